#include "plan.h"

#include <stdexcept>

namespace fish::sm90 {
namespace {

constexpr int kMultiprocessors = 132;  // of an H200; a plan decides speed only, so other parts run the same table
constexpr int kTileRows = 64;
constexpr int kLongBlocks = 48;  // blocks of K from which four CTAs a tile beat two

template <class Table>
Plan find(const Table& table, Split split, int rows, int tokens) {
  for (const auto& [up_to_tokens, plan] : table) {
    const bool is_of_split = plan.warpgroups_along_k == split.warpgroups_along_k && plan.ctas_along_k == split.ctas_along_k;
    if (is_of_split && tokens <= up_to_tokens && rows % (plan.weight_rows * plan.ctas_along_rows) == 0) return plan;
  }
  throw std::logic_error("a split of K has no plan");
}

}  // namespace

Split split_for(int rows, int columns) {
  const int tiles = rows / kTileRows;
  if (tiles >= 2 * kMultiprocessors) return kWide;
  if (2 * tiles >= kMultiprocessors) return kMiddle;
  return columns / kScaleBlock < kLongBlocks ? kNarrow : kDeep;
}

Plan fp8_plan(int rows, int columns, int tokens) { return find(kFp8Plans, split_for(rows, columns), rows, tokens); }

Plan w8a16_plan(int rows, int columns, int tokens) { return find(kW8a16Plans, split_for(rows, columns), rows, tokens); }

Plan gate_up_plan(int rows, int tokens) { return find(kGateUpPlans, kWide, rows, tokens); }

}  // namespace fish::sm90
