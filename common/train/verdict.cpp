#include "common/train/verdict.h"

#include "data/tales/judgement.h"

namespace strata::train {

std::optional<Judgement> judge(const std::string& data, std::string_view text) {
  if (data != "tales") return std::nullopt;
  const tales::Judgement read = tales::judge(tales::default_language(), text, /*complete=*/false);
  Judgement judgement;
  judgement.sentences = static_cast<std::int64_t>(read.sentences);
  judgement.well_formed = static_cast<std::int64_t>(read.sentences - read.malformed);
  judgement.judged = static_cast<std::int64_t>(read.right + read.untrue);
  judgement.right = static_cast<std::int64_t>(read.right);
  judgement.first_malformed = read.first_malformed.sentence;
  judgement.first_untrue = read.first_untrue.sentence;
  judgement.untrue_because = read.first_untrue.reason;
  return judgement;
}

}  // namespace strata::train
