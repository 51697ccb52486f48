#include "data/tales/odds.h"

#include <cmath>
#include <string_view>
#include <utility>

namespace strata::tales {
namespace {

using Form = Mention::Form;

/// -log2 of weight / total.
double information(std::uint64_t weight, std::uint64_t total) {
  return weight == total ? 0.0
                         : std::log2(static_cast<double>(total) / static_cast<double>(weight));
}

/// The information of word `index` of `count` that stand from common to rare, where some are used.
template <typename Used>
double word_information(int index, std::size_t count, Used used) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (!used(static_cast<int>(i))) total += count - i;
  return information(count - static_cast<std::size_t>(index), total);
}

/// Which parts of its claim an act leaves open; the rest follows from the world.
std::string_view open_parts(Act act) {
  switch (act) {
    case Act::give:
    case Act::ask:
    case Act::play:
      return "sto";
    case Act::like:
    case Act::meet:
    case Act::thank:
    case Act::laugh:
      return "st";
    case Act::want:
    case Act::see:
    case Act::take:
    case Act::put:
      return "so";
    case Act::go:
    case Act::ask_presence:
      return "sp";
    case Act::journey:
      return "stp";
    case Act::ask_giver:
      return "to";
    case Act::ask_spot:
    case Act::ask_holder:
      return "o";
    case Act::settle:
    case Act::lie:
    case Act::ask_crowd:
      return "p";
    case Act::arrive:
      return "";
    default:
      return "s";
  }
}

}  // namespace

Odds::Odds(const Language& language) : language_(language), weights_(language.weights) {
  for (const Likelihood& likelihood : language.likelihoods)
    likelihood_[static_cast<std::size_t>(likelihood.act)] = likelihood.weight;
}

std::optional<double> Odds::bits(const Reading& reading, const Claim& claim,
                                 const Ledger& ledger) const {
  const Act act = reading.wording->act;
  double sum = wording_bits(reading) + word_choice_bits(reading, claim, ledger) +
               mention_bits(reading.s, claim.s, claim, ledger) +
               mention_bits(reading.t, claim.t, claim, ledger);
  if (act == Act::open || act == Act::befriend || act == Act::settle || act == Act::arrive ||
      act == Act::own || act == Act::lie)
    sum += newcomer_bits(reading, ledger);
  if (act == Act::open || act == Act::end || is_reply(act)) return sum;
  if (timely_weight(act, ledger) == 0) return {};
  return sum + act_bits(act, ledger) + claim_bits(act, claim, ledger);
}

void Odds::pass(const Reading& reading) {
  const Act act = reading.wording->act;
  if (!is_reply(act)) ++steps_;
  asked_[static_cast<std::size_t>(act)] = is_question(act);
  if (act != Act::dawn && act != Act::noon && act != Act::dusk) return;
  weather_ = reading.weather;
  ++phase_;
  steps_ = 0;
  asked_ = {};
}

// ------------------------------------------------------------------------------------------------
// The act

Act Odds::turn() const {
  constexpr std::array<Act, phase_count> turns = {Act::dawn, Act::noon, Act::dusk, Act::sleep};
  return turns[static_cast<std::size_t>(phase_)];
}

std::uint64_t Odds::turn_weight(const Ledger& ledger) const {
  const Span& span = language_.limits.spans[static_cast<std::size_t>(phase_)];
  if (steps_ < span.least) return 0;
  const bool sparse = phase_ == 0 && (ledger.people() < 2 || ledger.things() == 0);
  if (sparse && steps_ < span.most) return 0;
  return span.turn * static_cast<std::uint64_t>(steps_ - span.least + 1);
}

std::uint64_t Odds::timely_weight(Act act, const Ledger& ledger) const {
  if (act == Act::sleep_with) act = Act::sleep;
  if (act == turn()) return turn_weight(ledger);
  if (steps_ >= language_.limits.spans[static_cast<std::size_t>(phase_)].most) return 0;
  const bool evening = phase_ == static_cast<int>(Phase::evening);
  if (is_question(act)) {
    const bool again = ledger.last_act && is_answer(*ledger.last_act) && !evening;
    if (again || asked_[static_cast<std::size_t>(act)]) return 0;
  }
  return likelihood_[static_cast<std::size_t>(act)][static_cast<std::size_t>(phase_)];
}

double Odds::act_bits(Act act, const Ledger& ledger) const {
  std::uint64_t total = turn_weight(ledger);
  for (const Likelihood& likelihood : language_.likelihoods) {
    const std::uint64_t weight = timely_weight(likelihood.act, ledger);
    if (weight != 0 && total_emphasis(likelihood.act, ledger) != 0) total += weight;
  }
  return information(timely_weight(act, ledger), total);
}

// ------------------------------------------------------------------------------------------------
// The claim

double Odds::claim_bits(Act act, const Claim& claim, const Ledger& ledger) const {
  if (act == Act::dawn || act == Act::noon || act == Act::dusk) return 0;
  if (act == Act::sleep || act == Act::sleep_with) {
    const std::uint64_t others = static_cast<std::uint64_t>(ledger.people() - 1);
    return information(claim.s == 0 ? weights_.sleeper_first : weights_.sleeper_other,
                       weights_.sleeper_first + others * weights_.sleeper_other);
  }
  return information(emphasis(act, claim, ledger), total_emphasis(act, ledger));
}

std::uint64_t Odds::total_emphasis(Act act, const Ledger& ledger) const {
  const std::string_view open = open_parts(act);
  const auto range = [open](char part, int count) {
    const bool varies = open.find(part) != std::string_view::npos;
    return std::pair{varies ? 0 : -1, varies ? count : 0};
  };
  const auto [s_begin, s_end] = range('s', ledger.people());
  const auto [t_begin, t_end] = range('t', ledger.people());
  const auto [o_begin, o_end] = range('o', ledger.things());
  const auto [p_begin, p_end] = range('p', static_cast<int>(language_.places.size()));
  std::uint64_t total = 0;
  for (int s = s_begin; s < s_end; ++s)
    for (int t = t_begin; t < t_end; ++t)
      for (int o = o_begin; o < o_end; ++o)
        for (int p = p_begin; p < p_end; ++p) {
          const Claim claim{s, t, o, p};
          if (ledger.possible(act, claim) == Truth::yes) total += emphasis(act, claim, ledger);
        }
  return total;
}

std::uint64_t Odds::destination(Act act, const Claim& c, const Ledger& ledger) const {
  if (act == Act::go) {
    const PersonNote& person = ledger.person(c.s);
    if (*person.wish >= 0 && ledger.spot(*person.wish) == c.p) return weights_.to_wish;
    for (int t = 0; t < ledger.people(); ++t)
      if (ledger.likes(c.s, t) == Truth::yes && ledger.at(t, c.p) == Truth::yes)
        return weights_.to_liked;
  }
  return ledger.named(c.p) == Truth::yes ? weights_.to_known : weights_.to_new;
}

std::uint64_t Odds::emphasis(Act act, const Claim& c, const Ledger& ledger) const {
  const int subject = *ledger.subject;
  const auto actor = [&](int s) -> std::uint64_t {
    if (s == subject) return weights_.same_subject;
    return ledger.together(s, subject) == Truth::yes ? weights_.near_subject : weights_.far_subject;
  };
  const auto liking = [&](int s, int t) -> std::uint64_t {
    return ledger.likes(s, t) == Truth::yes ? weights_.liked : weights_.not_liked;
  };
  const auto wanting = [&](int s) -> std::uint64_t {
    return ledger.person(s).wish == c.o ? weights_.wanted : weights_.not_wanted;
  };
  switch (act) {
    case Act::arrive:
    case Act::thank:
      return 1;
    case Act::settle:
    case Act::lie:
      if (ledger.at(subject, c.p) == Truth::yes) return weights_.here;
      return ledger.named(c.p) == Truth::yes ? weights_.there : weights_.elsewhere;
    case Act::meet:
      return liking(c.s, c.t);
    case Act::see:
      return wanting(c.s);
    case Act::take:
      return actor(c.s) * wanting(c.s);
    case Act::give:
      return actor(c.s) * liking(c.s, c.t) * wanting(c.t);
    case Act::go:
      return actor(c.s) * destination(act, c, ledger);
    case Act::journey:
      return (actor(c.s) + actor(c.t)) * destination(act, c, ledger);
    case Act::play:
    case Act::laugh:
      return actor(c.s) + actor(c.t);
    case Act::ask_presence:
      return ledger.at(c.s, c.p) == Truth::yes ? weights_.true_place : weights_.false_place;
    default:
      return is_question(act) ? 1 : actor(c.s);
  }
}

// ------------------------------------------------------------------------------------------------
// The words

double Odds::newcomer_bits(const Reading& r, const Ledger& ledger) const {
  double sum = 0;
  if (r.name >= 0) {
    const auto used = [&](auto value) {
      return [&ledger, value](int i) {
        for (int s = 0; s < ledger.people(); ++s)
          if (value(ledger.person(s)) == i) return true;
        return false;
      };
    };
    sum += word_information(r.name, language_.names.size(),
                            used([](const PersonNote& note) { return note.name; }));
    sum += word_information(r.species, language_.animals.size(),
                            used([](const PersonNote& note) { return *note.animal; }));
    sum += word_information(r.trait, language_.traits.size(),
                            used([](const PersonNote& note) { return *note.trait; }));
  }
  if (r.noun >= 0) {
    sum += word_information(r.adjective, language_.adjectives.size(), [](int) { return false; });
    sum += word_information(r.noun, language_.nouns.size(),
                            [&](int i) { return ledger.find_noun(i) >= 0; });
  }
  if (r.wording->act == Act::open)
    sum += word_information(r.place, language_.places.size(), [](int) { return false; });
  return sum;
}

double Odds::wording_bits(const Reading& reading) const {
  std::uint64_t total = 0;
  for (const Wording& wording : language_.wordings)
    if (wording.act == reading.wording->act) total += wording.weight;
  return information(reading.wording->weight, total);
}

double Odds::mention_bits(const Mention& mention, int person, const Claim& claim,
                          const Ledger& ledger) const {
  const std::uint64_t names_only = weights_.name + weights_.species;
  switch (mention.form) {
    case Form::they:
    case Form::both_names: {
      const bool they = ledger.pair == std::pair{claim.s, claim.t};
      return information(mention.form == Form::they ? weights_.they : weights_.both_names,
                         weights_.both_names + (they ? weights_.they : 0));
    }
    case Form::pronoun:
    case Form::name:
    case Form::species: {
      const bool pronoun = mention.pronoun_allowed && ledger.focus == person;
      const std::uint32_t weight = mention.form == Form::pronoun ? weights_.pronoun
                                   : mention.form == Form::name  ? weights_.name
                                                                 : weights_.species;
      return information(weight, names_only + (pronoun ? weights_.pronoun : 0));
    }
    default:
      return 0;
  }
}

double Odds::word_choice_bits(const Reading& r, const Claim& claim, const Ledger& ledger) const {
  double sum = 0;
  if (r.verb >= 0) {
    std::uint64_t total = weights_.own_gait;
    for (const Verb& verb : language_.verbs) total += verb.weight;
    const std::size_t verb = static_cast<std::size_t>(r.verb);
    sum += information(
        verb < language_.verbs.size() ? language_.verbs[verb].weight : weights_.own_gait, total);
  }
  if (r.deed >= 0) {
    const std::uint64_t others = language_.traits.size() - 1;
    sum += information(
        ledger.person(claim.s).trait == r.deed ? weights_.own_deed : weights_.other_deed,
        weights_.own_deed + others * weights_.other_deed);
  }
  if (r.weather >= 0) {
    const std::uint64_t kinds = language_.weathers.size();
    if (weather_ < 0) return sum + information(1, kinds);
    sum += information(r.weather == weather_ ? weights_.same_weather : weights_.new_weather,
                       weights_.same_weather + (kinds - 1) * weights_.new_weather);
  }
  return sum;
}

}  // namespace strata::tales
