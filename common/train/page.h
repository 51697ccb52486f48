// The report of a run: one HTML page that needs nothing but itself.
#pragma once

#include <filesystem>
#include <string>

#include "common/train/figure.h"
#include "common/train/metrics.h"
#include "common/train/summary.h"

namespace strata::train {

/// The page, as well-formed XML that is HTML too. `run` names the run in the title. Depends on
/// nothing but its arguments: the same run gives the same bytes.
[[nodiscard]] std::string make_page(const Metrics& metrics, const std::string& run);

// The parts of the page, each a string of HTML; empty where the run has nothing for it.

[[nodiscard]] std::string loss_section(const Metrics& metrics, const Summary& summary);
[[nodiscard]] std::string excess_section(const Metrics& metrics);
[[nodiscard]] std::string optimiser_section(const Metrics& metrics);
[[nodiscard]] std::string entropy_section(const Metrics& metrics);
[[nodiscard]] std::string samples_section(const Metrics& metrics);
[[nodiscard]] std::string numbers_section(const Metrics& metrics);
[[nodiscard]] std::string tables_section(const Metrics& metrics, const Summary& summary);

/// The curves of the sections above, for tests.
[[nodiscard]] Figure loss_figure(const Metrics& metrics);
[[nodiscard]] Figure excess_figure(const Metrics& metrics);
[[nodiscard]] Figure norm_figure(const Metrics& metrics);
[[nodiscard]] Figure rate_figure(const Metrics& metrics);

}  // namespace strata::train
