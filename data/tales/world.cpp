#include "data/tales/world.h"

#include <algorithm>

namespace strata::tales {

bool World::knows(int place) const {
  return std::find(known_places.begin(), known_places.end(), place) != known_places.end();
}

int World::spot(int o) const {
  const int holder = things[o].holder;
  return holder == nobody ? things[o].place : people[holder].place;
}

bool World::holds_any(int s) const {
  return std::any_of(things.begin(), things.end(),
                     [s](const Thing& thing) { return thing.holder == s; });
}

void World::learn(int place) {
  if (place != nowhere && !knows(place)) known_places.push_back(place);
}

void World::feel(int s, Mood mood) {
  people[s].mood = mood;
  people[s].mood_told = false;
}

/// A thing comes to s: a wish may come true, and others may see theirs fail.
void World::acquire(int s, int o) {
  things[o].holder = s;
  things[o].giver = nobody;
  for (int x = 0; x < static_cast<int>(people.size()); ++x) {
    if (people[x].wish != o) continue;
    feel(x, x == s ? Mood::happy : Mood::sad);
    if (x == s) people[x].wish = nothing;
  }
}

void World::hand_over(int from, int to, int o) {
  acquire(to, o);
  things[o].giver = from;
  people[to].likes[from] = true;
  feel(to, Mood::happy);
  feel(from, Mood::proud);
}

void World::change(Act act, const Meaning& m) {
  switch (act) {
    case Act::befriend:
      people[m.s].likes[m.t] = people[m.t].likes[m.s] = true;
      break;
    case Act::like:
      people[m.s].likes[m.t] = true;
      break;
    case Act::want:
      people[m.s].wish = m.o;
      break;
    case Act::go:
      people[m.s].place = m.p;
      break;
    case Act::take:
      acquire(m.s, m.o);
      break;
    case Act::put:
      things[m.o].holder = nobody;
      things[m.o].giver = nobody;
      things[m.o].place = m.p;
      break;
    case Act::give:
    case Act::consent:
      hand_over(m.s, m.t, m.o);
      break;
    case Act::refuse:
      people[m.t].wish = nothing;
      people[m.t].likes[m.s] = false;
      feel(m.t, Mood::sad);
      break;
    case Act::play:
      feel(m.s, Mood::happy);
      feel(m.t, Mood::happy);
      break;
    case Act::journey:
      people[m.s].place = people[m.t].place = m.p;
      break;
    case Act::feel:
      people[m.s].mood_told = true;
      break;
    default:
      break;
  }
}

/// Decides whom a pronoun in the next sentence may mean, and who counts as the last subject.
void World::turn_attention(Act act, const Meaning& m, const Language& language) {
  focus = nobody;
  pair = {nobody, nobody};
  if (is_question(act) || is_answer(act)) return;
  switch (act) {
    case Act::noon:
    case Act::dusk:
    case Act::lie:
      return;
    case Act::dawn:
      subject = m.s;
      return;
    case Act::play:
    case Act::laugh:
    case Act::journey:
      subject = m.s;
      pair = {m.s, m.t};
      return;
    default:
      break;
  }
  const bool newcomer = act == Act::befriend;
  subject = newcomer ? m.t : m.s;
  const int other = newcomer ? m.s : m.t;
  const auto female = [&](int person) { return language.names[people[person].name].female; };
  if (other == nobody || female(other) != female(subject)) focus = subject;
}

void World::apply(Act act, const Meaning& meaning, const Language& language) {
  learn(meaning.p);
  change(act, meaning);
  turn_attention(act, meaning, language);
  if (is_question(act)) asked |= 1u << (static_cast<int>(act) - static_cast<int>(Act::ask_place));
  if (!is_reply(act)) ++steps;
  if (act == Act::dawn || act == Act::noon || act == Act::dusk) {
    phase = static_cast<Phase>(static_cast<int>(phase) + 1);
    steps = 0;
    asked = 0;
  }
  last_act = act;
  last = meaning;
}

}  // namespace strata::tales
