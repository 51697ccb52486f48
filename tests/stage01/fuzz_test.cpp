// Files with random faults: whatever they hold, a reader may only succeed or throw a std::exception.
// The sanitizers (preset asan) make a read outside a buffer visible. A long search:
//   test_stage01_fuzz "[.fuzz]"        (STRATA_FUZZ_SECONDS, default 300; STRATA_FUZZ_SEED)

#include "tests/stage01/run_support.h"
#include "tests/stage01/stage01.h"

namespace {

using namespace strata::tests;
using stage01::Index;

/// Changes a file's bytes in one to four places.
std::string mutated(std::string bytes, std::mt19937_64& random) {
  static const char* const words[] = {"-1",
                                      "1e999",
                                      "nan",
                                      "null",
                                      "{",
                                      "[",
                                      "\"",
                                      "\\u",
                                      "}",
                                      "0.5",
                                      "99999999999999999999",
                                      "\xff",
                                      "\"shape\"",
                                      ":",
                                      ",",
                                      "true"};
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1));
  };
  // Headers and text stand in front: half of the faults are in the first two kilobytes.
  const auto place = [&] {
    return below(random() % 2 == 0 ? std::min<std::size_t>(bytes.size(), 2048) : bytes.size());
  };
  for (std::size_t faults = 1 + below(4); faults > 0; --faults) {
    if (bytes.empty()) return "x";
    const std::size_t at = place();
    switch (random() % 9) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(16));
        break;
      case 4:
        bytes.insert(at, words[below(std::size(words))]);
        break;
      case 5: {
        const std::string word = words[below(std::size(words))];
        bytes.replace(at, std::min(word.size(), bytes.size() - at), word);
        break;
      }
      case 6:
        bytes.insert(at, bytes.substr(place(), 1 + below(64)));
        break;
      case 7: {  // a number of 32 bits, often at a boundary
        const std::uint32_t numbers[] = {
            0, 1, 0x7fffffff, 0x80000000, 0xffffffff, static_cast<std::uint32_t>(random())};
        if (bytes.size() >= 4)
          std::memcpy(bytes.data() + std::min(at / 4 * 4, bytes.size() - 4), &numbers[below(6)], 4);
        break;
      }
      default:  // another digit, where there is one
        if (const std::size_t digit = bytes.find_first_of("0123456789", at);
            digit != std::string::npos)
          bytes[digit] = static_cast<char>('0' + below(10));
    }
  }
  return bytes;
}

/// The replay prints its steps; the test keeps that to itself.
struct Silence {
  int kept = ::dup(STDOUT_FILENO);
  Silence() {
    std::fflush(stdout);
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDOUT_FILENO);
    ::close(null);
  }
  ~Silence() {
    std::fflush(stdout);
    ::dup2(kept, STDOUT_FILENO);
    ::close(kept);
  }
};

/// One good run, and what reads each of its files.
struct Readers {
  Workshop workshop;
  fs::path saved = fs::path(workshop("out")) / "step_00000002";
  stage01::Model model{{1, 8, 2, 4, 257}, 2, 4, true};

  struct Reader {
    fs::path file;
    std::function<void()> read;
    std::string good{};
    long refused = 0, accepted = 0;
  };
  std::vector<Reader> readers;
  std::string complaint;  ///< what was wrong with an answer; told later, for the output is silent

  Readers() {
    trained(workshop.tiny({"--init", "L1,C8,H2,T4,V257", "--steps", "2", "--out", workshop("out"),
                           "--trace", workshop("trace")}));
    const auto load = [this] {
      stage01::State state;
      stage01::load_state(saved, model, state, 1906);
    };
    const auto settings = [this] {
      stage01::Settings s;
      stage01::load_settings(saved / "state.json", s);
    };
    const auto data = [this] {
      const stage01::DataSet set(workshop.data, 4, 257);
      stage01::Batch batch(8, 4);
      stage01::deal(set.train, 1, 0, batch);
    };
    const auto replay = [this] {
      stage01::Settings s;
      s.replay = workshop("trace"), s.trace = workshop("again");
      stage01::replay(s);
    };
    const fs::path set = workshop.data;
    readers = {{saved / "model.safetensors", [this] { stage01::load_model(saved, model); }},
               {saved / "optimizer-00000-of-00001.safetensors", load},
               {saved / "state.json", load},
               {saved / "state.json", settings},
               {saved / "config.json", [this] { stage01::read_config(saved); }},
               {set / "dataset.json", data},
               {set / "tokenizer.bin", data},
               {set / "train_000000.bin", data},
               {workshop("trace"), replay}};
    const Silence silence;
    for (Reader& reader : readers) {
      reader.read();  // unbroken, it is read
      reader.good = strata::io::read_file(reader.file);
    }
  }

  /// Reads a broken version of the next file in turn, and mends it.
  void round(std::mt19937_64& random, long number) {
    Reader& reader = readers[static_cast<std::size_t>(number) % readers.size()];
    {
      std::ofstream file(reader.file, std::ios::binary | std::ios::trunc);
      file << mutated(reader.good, random);
    }
    try {
      reader.read();
      ++reader.accepted;
    } catch (const std::exception& error) {
      ++reader.refused;
      if (std::strlen(error.what()) == 0) complaint = "no reason for " + reader.file.string();
    }
    std::ofstream(reader.file, std::ios::binary | std::ios::trunc) << reader.good;
  }
};

/// Flags and descriptors with random faults.
std::string flag_round(std::mt19937_64& random) {
  static const std::vector<std::string> words = {
      "--init",    "L1,C8,H2,T4,V257", "--batch",   "4",
      "--lr=1e-3", "--plan",           "--seq",     "--schedule",
      "wsd",       "--trace-steps",    "0,5,10",    "--top-p",
      "0.5",       "gpt3:c768",        "d12,V1024", "--steps=100"};
  Arguments arguments;
  for (std::size_t n = random() % 5; n > 0; --n) {
    arguments.push_back(words[random() % words.size()]);
    if (random() % 2 == 0) arguments.back() = mutated(arguments.back(), random);
  }
  try {
    stage01::Settings settings;
    stage01::parse_arguments(settings, arguments);
    stage01::number_list(settings.trace_steps, "--trace-steps", 1 << 20);
    const stage01::Config config = stage01::parse_descriptor(settings.init);
    const Index T = settings.seq == 0 ? config.maxT : settings.seq;
    for (const auto& [role, floats] : stage01::plan_memory(config, settings.batch, T, true))
      if (floats < 0) return "a plan of " + std::to_string(floats) + " floats for " + settings.init;
  } catch (const std::exception& error) {
    if (std::strlen(error.what()) == 0) return "no reason";
  }
  return "";
}

void fuzz(double seconds, std::uint64_t seed) {
  Readers readers;
  std::mt19937_64 random(seed);
  // A fault may ask for more memory than a test should take. (AddressSanitizer needs terabytes.)
  rlimit before{};
  ::getrlimit(RLIMIT_AS, &before);
  const rlimit limit{rlim_t{4} << 30, before.rlim_max};
  if (!STRATA_UNDER_ASAN) ::setrlimit(RLIMIT_AS, &limit);
  const auto start = std::chrono::steady_clock::now();
  long rounds = 0;
  {
    const Silence silence;
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
           seconds) {
      for (int i = 0; i < 50; ++i)
        if (const std::string wrong = flag_round(random); !wrong.empty()) readers.complaint = wrong;
      readers.round(random, rounds++);
    }
  }
  ::setrlimit(RLIMIT_AS, &before);
  INFO("seed " << seed << ", " << rounds << " files");
  CHECK(readers.complaint == "");
  CHECK(rounds > 50);
  for (const Readers::Reader& reader : readers.readers) {
    INFO(reader.file.filename() << ": " << reader.refused << " refused, " << reader.accepted
                                << " accepted");
    CHECK(reader.refused > 0);  // the faults are felt
  }
}

TEST_CASE("files and flags with random faults are read or refused, for five seconds") {
  fuzz(5, 1);
}

TEST_CASE("files and flags with random faults, for as long as wanted", "[.fuzz]") {
  const char* seconds = std::getenv("STRATA_FUZZ_SECONDS");
  const char* seed = std::getenv("STRATA_FUZZ_SEED");
  fuzz(seconds != nullptr ? std::stod(seconds) : 300,
       seed != nullptr ? std::stoull(seed) : std::random_device()());
}

TEST_CASE("the faults change what they are applied to, and are the same for one seed") {
  const std::string bytes(500, '5');
  std::mt19937_64 one(3), two(3);
  int changed = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string mutant = mutated(bytes, one);
    CHECK(mutant == mutated(bytes, two));
    changed += mutant != bytes;
  }
  CHECK(changed > 950);
}

}  // namespace
