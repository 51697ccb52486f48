// Lines of metrics.jsonl for tests.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace strata::tests {

/// A run of 4 steps of 100 tokens on tales with known entropies.
inline std::string run_line(int step = 0, int steps = 4) {
  return fmt::format(
      R"({{"kind":"run","time":1796048700,"stage":"01","step":{},"steps":{},)"
      R"("model":{{"L":2,"C":64,"H":4,"T":32,"V":1000,"Vp":1024,"parameters":167552}},)"
      R"("batch":2,"seq":25,"accum":2,"tokens_per_step":100,)"
      R"("settings":{{"lr":"0.001","clip":"1","data":"a<b>&\"c\""}},)"
      R"("entropy_train":1.25,"entropy_val":1.5,)"
      R"("data":{{"name":"tales","train_tokens":1000,"val_tokens":200}},)"
      R"("memory":[{{"name":"parameters","bytes":1048576}},{{"name":"activations","bytes":3145728}}],)"
      R"("threads":2}})"
      "\n",
      step, steps);
}

/// One step of 0.5 s.
inline std::string train_line(int step, const std::string& loss, bool skipped = false) {
  return fmt::format(
      R"({{"kind":"train","step":{},"loss":{},"lr":0.001,"norm":2,"tokens":{},"seconds":0.5,)"
      R"("skipped":{},"loss_z":null,"norm_z":null}})"
      "\n",
      step, loss, (step + std::int64_t{1}) * 100, skipped);
}

inline std::string val_line(int step, const std::string& loss) {
  return fmt::format("{{\"kind\":\"val\",\"step\":{},\"loss\":{}}}\n", step, loss);
}

/// `text` is JSON's inside of a string.
inline std::string sample_line(int step, const std::string& text) {
  return fmt::format("{{\"kind\":\"sample\",\"step\":{},\"text\":\"{}\",\"prompt\":\"\"}}\n", step,
                     text);
}

inline std::string end_line(int step) {
  return fmt::format("{{\"kind\":\"end\",\"step\":{},\"seconds\":3.5}}\n", step);
}

}  // namespace strata::tests
