#include "data/tales/pen.h"

#include <array>
#include <cctype>

namespace strata::tales {

void Pen::write(Act act, const Meaning& meaning) {
  const bool new_line = act == Act::dawn || act == Act::noon || act == Act::dusk ||
                        act == Act::sleep || act == Act::sleep_with;
  if (!text_.empty()) text_ += new_line ? '\n' : ' ';

  weights_.clear();
  for (const Wording& wording : language_.wordings)
    weights_.push_back(wording.act == act ? wording.weight : 0);
  const std::string_view wording = language_.wordings[chooser_.choose(weights_)].text;

  const std::size_t start = text_.size();
  for (std::size_t at = 0; at < wording.size();) {
    if (wording[at] != '{') {
      text_ += wording[at++];
      continue;
    }
    const std::size_t close = wording.find('}', at);
    slot(wording.substr(at + 1, close - at - 1), act, meaning);
    at = close + 1;
  }
  text_[start] = static_cast<char>(std::toupper(static_cast<unsigned char>(text_[start])));
}

void Pen::slot(std::string_view slot, Act act, const Meaning& m) {
  // The newcomer of a sentence that brings one; whom a question was about, otherwise.
  const int described = act == Act::befriend ? m.t : m.s;
  if (slot == "s") return mention(m.s, true);
  if (slot == "x") return mention(m.s, false);
  if (slot == "t") return mention(m.t, false);
  if (slot == "both") return mention_pair(m);
  if (slot == "v") return gait(m.s);
  if (slot == "deed") return deed(m.s);
  if (slot == "list") return list(act, m);
  if (slot == "things") return things_of(m.s);
  if (slot == "N") text_ += name(m.s);
  if (slot == "T") text_ += name(m.t);
  if (slot == "he") text_ += female(m.s) ? "she" : "he";
  if (slot == "his") text_ += female(m.s) ? "her" : "his";
  if (slot == "o") text_ += thing(m.o);
  if (slot == "adj") text_ += language_.adjectives[world_.things[m.o].adjective];
  if (slot == "noun") text_ += language_.nouns[world_.things[m.o].noun];
  if (slot == "name") text_ += name(described);
  if (slot == "species") text_ += language_.animals[world_.people[described].animal].species;
  if (slot == "trait") text_ += language_.traits[world_.people[described].trait].word;
  if (slot == "mood") text_ += mood_words[static_cast<int>(world_.people[m.s].mood)];
  if (slot == "weather") text_ += language_.weathers[world_.weather];
  if (slot == "p") text_ += language_.places[m.p].preposition + " ";
  if (slot == "p" || slot == "to") text_ += "the " + language_.places[m.p].word;
}

void Pen::mention(int person, bool pronoun_allowed) {
  const Weights& weights = language_.weights;
  const bool pronoun = pronoun_allowed && world_.focus == person;
  const std::array<std::uint32_t, 3> forms = {pronoun ? weights.pronoun : 0, weights.name,
                                              weights.species};
  switch (chooser_.choose(forms)) {
    case 0:
      text_ += female(person) ? "she" : "he";
      break;
    case 1:
      text_ += name(person);
      break;
    default:
      text_ += "the " + language_.animals[world_.people[person].animal].species;
  }
}

void Pen::mention_pair(const Meaning& m) {
  const Weights& weights = language_.weights;
  const bool they = world_.pair[0] == m.s && world_.pair[1] == m.t;
  const std::array<std::uint32_t, 2> forms = {they ? weights.they : 0, weights.both_names};
  text_ += chooser_.choose(forms) == 0 ? "they" : name(m.s) + " and " + name(m.t);
}

void Pen::gait(int person) {
  weights_.clear();
  for (const Verb& verb : language_.verbs) weights_.push_back(verb.weight);
  weights_.push_back(language_.weights.own_gait);
  const std::size_t chosen = chooser_.choose(weights_);
  text_ += chosen < language_.verbs.size() ? language_.verbs[chosen].text
                                           : language_.animals[world_.people[person].animal].gait;
}

void Pen::deed(int person) {
  weights_.assign(language_.traits.size(), language_.weights.other_deed);
  weights_[world_.people[person].trait] = language_.weights.own_deed;
  text_ += language_.traits[chooser_.choose(weights_)].deed;
}

void Pen::list(Act act, const Meaning& m) {
  std::vector<std::string> names;
  for (int x = 0; x < static_cast<int>(world_.people.size()); ++x) {
    const bool belongs =
        act == Act::tell_likes ? world_.people[m.s].likes[x] : world_.people[x].place == m.p;
    if (belongs) names.push_back(name(x));
  }
  series(names);
}

void Pen::things_of(int person) {
  std::vector<std::string> held;
  for (int o = 0; o < static_cast<int>(world_.things.size()); ++o)
    if (world_.things[o].holder == person) held.push_back("the " + thing(o));
  series(held);
}

void Pen::series(const std::vector<std::string>& items) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text_ += i + 1 == items.size() ? " and " : ", ";
    text_ += items[i];
  }
}

std::string Pen::thing(int o) const {
  return language_.adjectives[world_.things[o].adjective] + " " +
         language_.nouns[world_.things[o].noun];
}

}  // namespace strata::tales
