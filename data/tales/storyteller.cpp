#include "data/tales/storyteller.h"

#include <utility>
#include <vector>

#include "data/tales/pen.h"
#include "data/tales/possible.h"
#include "data/tales/world.h"

namespace strata::tales {
namespace {

class Storyteller {
 public:
  Storyteller(const Language& language, Chooser& chooser)
      : language_(language), chooser_(chooser), pen_(language, world_, chooser, text_) {}

  std::string tell() {
    open();
    while (world_.last_act != Act::end) step();
    return std::move(text_) + "\n";
  }

 private:
  void open() {
    Meaning first{.s = 0};
    first.p = word(language_.places.size(), [](int) { return false; });
    new_person(first.p);
    say(Act::open, first);
  }

  /// One choice of what happens, and all that follows from it without a choice of another act.
  void step() {
    const Act act = choose_act();
    if (act == turning_act(world_)) return turn(act);
    possible_meanings(act, world_, language_, meanings_);
    weights_.clear();
    for (const Meaning& meaning : meanings_) weights_.push_back(meaning.weight);
    const Meaning meaning = meanings_[chooser_.choose(weights_)];
    bring_in(act, meaning);
    say(act, meaning);
    if (is_question(act)) answer(act, meaning);
    if (act == Act::ask) respond(meaning);
  }

  /// Chooses among the acts that are possible; the one that ends the phase comes last.
  Act choose_act() {
    const std::size_t phase = static_cast<std::size_t>(world_.phase);
    const bool full = phase_is_full(world_, language_);
    std::vector<std::uint32_t>& weights = act_weights_;
    weights.clear();
    for (const Likelihood& likelihood : language_.likelihoods) {
      std::uint32_t weight = full ? 0 : likelihood.weight[phase];
      if (weight != 0) {
        possible_meanings(likelihood.act, world_, language_, meanings_);
        if (meanings_.empty()) weight = 0;
      }
      weights.push_back(weight);
    }
    weights.push_back(turning_weight(world_, language_));
    const std::size_t chosen = chooser_.choose(weights);
    return chosen < language_.likelihoods.size() ? language_.likelihoods[chosen].act
                                                 : turning_act(world_);
  }

  /// A new part of the day begins, or the story ends.
  void turn(Act act) {
    if (act == Act::sleep) return finish();
    weights_.assign(language_.weathers.size(), language_.weights.new_weather);
    if (world_.weather >= 0) weights_[world_.weather] = language_.weights.same_weather;
    world_.weather = static_cast<int>(chooser_.choose(weights_));
    Meaning meaning;
    if (act == Act::dawn) meaning = {.s = 0, .p = world_.people[0].place};
    say(act, meaning);
  }

  void finish() {
    weights_.assign(world_.people.size(), language_.weights.sleeper_other);
    weights_[0] = language_.weights.sleeper_first;
    const int s = static_cast<int>(chooser_.choose(weights_));
    say(world_.holds_any(s) ? Act::sleep_with : Act::sleep, {.s = s, .p = world_.people[s].place});
    say(Act::end, {});
  }

  /// The person or thing that comes in by this act.
  void bring_in(Act act, const Meaning& m) {
    if (act == Act::befriend) new_person(world_.people[m.s].place);
    if (act == Act::settle || act == Act::arrive) new_person(m.p);
    if (act == Act::own) new_thing(m.s, nowhere);
    if (act == Act::lie) new_thing(nobody, m.p);
  }

  void new_person(int place) {
    const auto used = [&](int Person::*member) {
      return [this, member](int i) {
        for (const Person& person : world_.people)
          if (person.*member == i) return true;
        return false;
      };
    };
    const int name = word(language_.names.size(), used(&Person::name));
    const int animal = word(language_.animals.size(), used(&Person::animal));
    const int trait = word(language_.traits.size(), used(&Person::trait));
    world_.people.push_back({.name = name, .animal = animal, .trait = trait, .place = place});
  }

  void new_thing(int holder, int place) {
    const int adjective = word(language_.adjectives.size(), [](int) { return false; });
    const int noun = word(language_.nouns.size(), [&](int i) {
      for (const Thing& thing : world_.things)
        if (thing.noun == i) return true;
      return false;
    });
    world_.things.push_back(
        {.adjective = adjective, .noun = noun, .holder = holder, .place = place});
  }

  /// Chooses a word of a list that stands from common to rare, among those not used yet.
  template <typename Used>
  int word(std::size_t count, Used used) {
    weights_.clear();
    for (std::size_t i = 0; i < count; ++i)
      weights_.push_back(used(static_cast<int>(i)) ? 0 : static_cast<std::uint32_t>(count - i));
    return static_cast<int>(chooser_.choose(weights_));
  }

  /// The answer, which the world determines.
  void answer(Act question, const Meaning& m) {
    switch (question) {
      case Act::ask_place:
        return say(Act::tell_place, {.s = m.s, .p = world_.people[m.s].place});
      case Act::ask_spot: {
        const int holder = world_.things[m.o].holder;
        return say(holder == nobody ? Act::tell_spot_free : Act::tell_spot_held,
                   {.s = holder, .o = m.o, .p = world_.spot(m.o)});
      }
      case Act::ask_holder: {
        const int holder = world_.things[m.o].holder;
        return say(holder == nobody ? Act::tell_no_holder : Act::tell_holder,
                   {.s = holder, .o = m.o});
      }
      case Act::ask_things:
        return say(world_.holds_any(m.s) ? Act::tell_things : Act::tell_no_things, {.s = m.s});
      case Act::ask_likes: {
        bool any = false;
        for (const bool likes : world_.people[m.s].likes) any = any || likes;
        return say(any ? Act::tell_likes : Act::tell_no_likes, {.s = m.s});
      }
      case Act::ask_wish: {
        const int wish = world_.people[m.s].wish;
        return say(wish == nothing ? Act::tell_no_wish : Act::tell_wish, {.s = m.s, .o = wish});
      }
      case Act::ask_presence: {
        const int place = world_.people[m.s].place;
        return say(place == m.p ? Act::tell_yes : Act::tell_no, {.s = m.s, .p = place});
      }
      case Act::ask_crowd: {
        int count = 0;
        for (const Person& person : world_.people) count += person.place == m.p;
        return say(count == 0   ? Act::tell_crowd_none
                   : count == 1 ? Act::tell_crowd_one
                                : Act::tell_crowd_many,
                   {.p = m.p});
      }
      case Act::ask_giver:
        return say(Act::tell_giver, {.s = m.s});
      case Act::ask_mood:
        return say(Act::tell_mood, {.s = m.s});
      default:
        return say(Act::tell_self, {.s = m.s});
    }
  }

  /// Whoever is asked for a thing gives it to somebody liked and to nobody else.
  void respond(const Meaning& request) {
    const bool likes = world_.people[request.t].likes[request.s];
    say(likes ? Act::consent : Act::refuse, {.s = request.t, .t = request.s, .o = request.o});
  }

  void say(Act act, const Meaning& meaning) {
    pen_.write(act, meaning);
    world_.apply(act, meaning, language_);
  }

  const Language& language_;
  Chooser& chooser_;
  World world_;
  std::string text_;
  Pen pen_;
  std::vector<Meaning> meanings_;
  std::vector<std::uint32_t> weights_, act_weights_;
};

}  // namespace

std::string tell_story(const Language& language, Chooser& chooser) {
  return Storyteller(language, chooser).tell();
}

}  // namespace strata::tales
