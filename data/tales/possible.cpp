#include "data/tales/possible.h"

namespace strata::tales {
namespace {

/// The meanings of one act in one world; each member lists those of one kind of act.
class Lister {
 public:
  Lister(Act act, const World& world, const Language& language, std::vector<Meaning>& meanings)
      : act_(act),
        world_(world),
        language_(language),
        weights_(language.weights),
        people_(static_cast<int>(world.people.size())),
        things_(static_cast<int>(world.things.size())),
        places_(static_cast<int>(language.places.size())),
        meanings_(meanings) {}

  void list() {
    if (is_question(act_)) return question();
    switch (act_) {
      case Act::befriend:
      case Act::settle:
      case Act::arrive:
        return person_comes();
      case Act::own:
      case Act::lie:
        return thing_comes();
      case Act::go:
        return go();
      case Act::meet:
      case Act::see:
        return arrival();
      case Act::take:
      case Act::put:
      case Act::give:
      case Act::ask:
        return thing_moves();
      case Act::play:
      case Act::laugh:
      case Act::journey:
        return pair_acts();
      default:
        return person_acts();
    }
  }

 private:
  void add(Meaning meaning) { meanings_.push_back(meaning); }

  /// The weight of s as the one who acts.
  [[nodiscard]] std::uint32_t acting(int s) const {
    if (s == world_.subject) return weights_.same_subject;
    return world_.together(s, world_.subject) ? weights_.near_subject : weights_.far_subject;
  }
  [[nodiscard]] bool may_name_new_place() const {
    return static_cast<int>(world_.known_places.size()) < language_.limits.places;
  }

  void person_comes() {
    if (people_ >= language_.limits.people) return;
    const int here = world_.people[world_.subject].place;
    if (act_ == Act::arrive) return add({.s = people_, .p = here});
    if (act_ == Act::befriend) {
      for (int s = 0; s < people_; ++s)
        add({.s = s, .t = people_, .p = nowhere, .weight = acting(s)});
      return;
    }
    for (int p = 0; p < places_; ++p) {
      const bool known = world_.knows(p);
      if (!known && !may_name_new_place()) continue;
      add({.s = people_,
           .p = p,
           .weight = p == here ? weights_.here
                     : known   ? weights_.there
                               : weights_.elsewhere});
    }
  }

  void thing_comes() {
    if (things_ >= language_.limits.things) return;
    if (act_ == Act::own) {
      for (int s = 0; s < people_; ++s) add({.s = s, .o = things_, .weight = acting(s)});
      return;
    }
    for (const int p : world_.known_places) {
      const bool here = p == world_.people[world_.subject].place;
      add({.o = things_, .p = p, .weight = here ? weights_.here : weights_.there});
    }
  }

  void person_acts() {
    if (act_ == Act::thank) {
      if (world_.last_act == Act::give) add({.s = world_.last.t, .t = world_.last.s});
      return;
    }
    for (int s = 0; s < people_; ++s) {
      const Person& person = world_.people[s];
      if (act_ == Act::deed) add({.s = s, .weight = acting(s)});
      if (act_ == Act::feel && !person.mood_told) add({.s = s, .weight = acting(s)});
      if (act_ == Act::like)
        for (int t = 0; t < people_; ++t)
          if (t != s && !person.likes[t]) add({.s = s, .t = t, .weight = acting(s)});
      if (act_ == Act::want && person.wish == nothing)
        for (int o = 0; o < things_; ++o)
          if (world_.things[o].holder != s) add({.s = s, .o = o, .weight = acting(s)});
    }
  }

  /// How much p draws somebody.
  [[nodiscard]] std::uint32_t pull(int s, int p) const {
    const Person& person = world_.people[s];
    if (person.wish != nothing && world_.spot(person.wish) == p) return weights_.to_wish;
    for (int t = 0; t < people_; ++t)
      if (person.likes[t] && world_.people[t].place == p) return weights_.to_liked;
    if (world_.knows(p)) return weights_.to_known;
    return may_name_new_place() ? weights_.to_new : 0;
  }

  void go() {
    for (int s = 0; s < people_; ++s)
      for (int p = 0; p < places_; ++p)
        if (p != world_.people[s].place && pull(s, p) != 0)
          add({.s = s, .p = p, .weight = acting(s) * pull(s, p)});
  }

  void arrival() {
    if (world_.last_act != Act::go) return;
    const int s = world_.subject;
    const Person& person = world_.people[s];
    if (act_ == Act::meet) {
      for (int t = 0; t < people_; ++t)
        if (t != s && world_.together(s, t))
          add({.s = s, .t = t, .weight = person.likes[t] ? weights_.liked : weights_.not_liked});
      return;
    }
    for (int o = 0; o < things_; ++o)
      if (lies_by(s, o)) add({.s = s, .o = o, .weight = wish_weight(s, o)});
  }

  [[nodiscard]] bool lies_by(int s, int o) const {
    return world_.things[o].holder == nobody && world_.things[o].place == world_.people[s].place;
  }
  [[nodiscard]] std::uint32_t wish_weight(int s, int o) const {
    return world_.people[s].wish == o ? weights_.wanted : weights_.not_wanted;
  }

  void thing_moves() {
    for (int s = 0; s < people_; ++s)
      for (int o = 0; o < things_; ++o) {
        const int holder = world_.things[o].holder;
        if (act_ == Act::take && lies_by(s, o))
          add({.s = s, .o = o, .weight = acting(s) * wish_weight(s, o)});
        if (act_ == Act::put && holder == s)
          add({.s = s, .o = o, .p = world_.people[s].place, .weight = acting(s)});
        if (act_ == Act::ask && holder != nobody && holder != s && world_.together(s, holder) &&
            world_.people[s].wish == o)
          add({.s = s, .t = holder, .o = o, .weight = acting(s)});
        if (act_ == Act::give && holder == s)
          for (int t = 0; t < people_; ++t)
            if (t != s && world_.together(s, t))
              add({.s = s, .t = t, .o = o, .weight = acting(s) * gift_weight(s, t, o)});
      }
  }
  [[nodiscard]] std::uint32_t gift_weight(int s, int t, int o) const {
    return (world_.people[s].likes[t] ? weights_.liked : weights_.not_liked) * wish_weight(t, o);
  }

  void pair_acts() {
    for (int s = 0; s < people_; ++s)
      for (int t = s + 1; t < people_; ++t) {
        if (!world_.together(s, t)) continue;
        const int here = world_.people[s].place;
        const std::uint32_t weight = acting(s) + acting(t);
        if (act_ == Act::laugh) add({.s = s, .t = t, .p = here, .weight = weight});
        if (act_ == Act::play)
          for (int o = 0; o < things_; ++o)
            if (world_.things[o].holder == s || world_.things[o].holder == t)
              add({.s = s, .t = t, .o = o, .p = here, .weight = weight});
        if (act_ == Act::journey && world_.people[s].likes[t] && world_.people[t].likes[s])
          for (int p = 0; p < places_; ++p)
            if (p != here && (world_.knows(p) || may_name_new_place()))
              add({.s = s,
                   .t = t,
                   .p = p,
                   .weight = weight * (world_.knows(p) ? weights_.to_known : weights_.to_new)});
      }
  }

  void question() {
    const bool just_asked = is_answer(world_.last_act);
    if (world_.phase != Phase::evening && just_asked) return;
    if (world_.asked >> (static_cast<int>(act_) - static_cast<int>(Act::ask_place)) & 1) return;
    switch (act_) {
      case Act::ask_spot:
      case Act::ask_holder:
        for (int o = 0; o < things_; ++o) add({.o = o});
        return;
      case Act::ask_giver:
        for (int o = 0; o < things_; ++o)
          if (world_.things[o].giver != nobody)
            add({.s = world_.things[o].giver, .t = world_.things[o].holder, .o = o});
        return;
      case Act::ask_crowd:
        for (const int p : world_.known_places) add({.p = p});
        return;
      case Act::ask_presence:
        for (int s = 0; s < people_; ++s)
          for (const int p : world_.known_places)
            add({.s = s,
                 .p = p,
                 .weight =
                     world_.people[s].place == p ? weights_.true_place : weights_.false_place});
        return;
      default:
        for (int s = 0; s < people_; ++s)
          if (act_ != Act::ask_mood || world_.people[s].mood != Mood::none) add({.s = s});
    }
  }

  Act act_;
  const World& world_;
  const Language& language_;
  const Weights& weights_;
  int people_, things_, places_;
  std::vector<Meaning>& meanings_;
};

}  // namespace

void possible_meanings(Act act, const World& world, const Language& language,
                       std::vector<Meaning>& meanings) {
  meanings.clear();
  Lister(act, world, language, meanings).list();
}

Act turning_act(const World& world) {
  switch (world.phase) {
    case Phase::setting:
      return Act::dawn;
    case Phase::day:
      return Act::noon;
    case Phase::afternoon:
      return Act::dusk;
    default:
      return Act::sleep;
  }
}

bool phase_is_full(const World& world, const Language& language) {
  return world.steps >= language.limits.spans[static_cast<int>(world.phase)].most;
}

std::uint32_t turning_weight(const World& world, const Language& language) {
  const Span& span = language.limits.spans[static_cast<int>(world.phase)];
  if (world.steps < span.least) return 0;
  const bool empty_stage = world.people.size() < 2 || world.things.empty();
  if (world.phase == Phase::setting && empty_stage && !phase_is_full(world, language)) return 0;
  return span.turn * static_cast<std::uint32_t>(world.steps - span.least + 1);
}

}  // namespace strata::tales
