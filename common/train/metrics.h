// Reads metrics.jsonl, the diary that every run keeps: one JSON object a line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace strata::train {

/// Stands for a number that the file gives as null (not finite) or not at all.
inline constexpr double absent = std::numeric_limits<double>::quiet_NaN();

/// One update. `step` is the number of updates made before it.
struct TrainStep {
  std::int64_t step = 0;
  double loss = absent;     ///< nats per token, mean over the batch
  double lr = absent;       ///< learning rate
  double norm = absent;     ///< global L2 norm of the gradient before clipping
  double tokens = absent;   ///< tokens seen by the run so far, this step's included
  double seconds = absent;  ///< how long the step took
  bool skipped = false;     ///< an outlier: the update was left out
};

/// Mean loss on the validation split after `step` updates.
struct Validation {
  std::int64_t step = 0;
  double loss = absent;
};

/// Text that the model wrote after `step` updates.
struct Sample {
  std::int64_t step = 0;
  std::string prompt;
  std::string text;
};

struct MemoryItem {
  std::string name;
  double bytes = absent;
};

/// What a run says of itself when it starts.
struct RunHeader {
  std::int64_t step = 0;  ///< the first step it will make
  double steps = absent;  ///< the step at which it will end
  double time = absent;   ///< seconds since 1970
  std::string stage;      ///< "01"
  double layers = absent, channels = absent, heads = absent, max_seq = absent;
  double vocab = absent, padded_vocab = absent, parameters = absent;
  double batch = absent, seq = absent, accum = absent, tokens_per_step = absent, threads = absent;
  double entropy_train = absent, entropy_val = absent;  ///< of the source, nats per token
  std::string data_name;
  double train_tokens = absent, val_tokens = absent;
  std::vector<MemoryItem> memory;
  std::vector<std::pair<std::string, std::string>> settings;  ///< flag and value, as text
};

/// A whole run, put in order: steps ascend and none is there twice.
struct Metrics {
  std::vector<RunHeader> runs;  ///< one for the start and one for every resume; may be empty
  std::vector<TrainStep> train;
  std::vector<Validation> validation;
  std::vector<Sample> samples;
  bool ended = false;           ///< the last session came to its end
  double end_seconds = absent;  ///< how long the last session took, all told

  std::int64_t damaged_lines = 0;  ///< lines that could not be read, a cut-off last one not counted
  std::int64_t first_damaged = 0;  ///< the number of the first of them, from 1
  bool truncated = false;          ///< the last line was cut off, as a killed run leaves it
  std::int64_t superseded = 0;     ///< lines that a resume made void

  /// The latest header; a default one where the file has none.
  [[nodiscard]] const RunHeader& header() const;
};

/// Reads `text`, the contents of a metrics.jsonl; `name` is what errors call it.
///
/// A `run` line voids what came after its first step in the file so far (a resume goes back to the
/// last checkpoint); where one step is there twice, the later line wins. Lines that cannot be read
/// are counted and passed over; a line that was begun, then followed by a whole one without a line
/// end between them (a kill, then a resume), yields the whole one.
/// Throws std::runtime_error with a sentence if nothing in it is a Strata run's.
[[nodiscard]] Metrics parse_metrics(std::string_view text, const std::string& name);

/// Reads the metrics.jsonl of a run directory. Throws std::runtime_error with a sentence if the
/// directory or the file is missing, unreadable, empty or foreign.
[[nodiscard]] Metrics read_metrics(const std::filesystem::path& run_directory);

}  // namespace strata::train
