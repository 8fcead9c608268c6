#include "plan.h"

#include <stdexcept>

namespace fish::sm90 {
namespace {

constexpr int kMultiprocessors = 132;  // of an H200; a plan decides speed only, so other parts run the same table
constexpr int kTileRows = 64;
constexpr int kLongBlocks = 48;  // blocks of K from which four CTAs a tile beat two

// The plan of a split with the smallest token tile that holds the tokens, or the largest there is.
template <class Table>
const Plan* find(const Table& table, Split split, int tokens) {
  const Plan* found = nullptr;
  for (const Plan& plan : table) {
    if (plan.warpgroups_along_k != split.warpgroups_along_k || plan.cluster != split.cluster) continue;
    if (found == nullptr || found->token_tile < tokens) found = &plan;  // tables ascend in token tiles
  }
  return found;
}

template <class Table>
Plan find_or_throw(const Table& table, Split split, int tokens) {
  const Plan* plan = find(table, split, tokens);
  if (plan == nullptr) throw std::logic_error("a split of K has no plan");
  return *plan;
}

}  // namespace

Split split_for(int rows, int columns) {
  const int tiles = rows / kTileRows;
  if (tiles >= 2 * kMultiprocessors) return kWide;
  if (2 * tiles >= kMultiprocessors) return kMiddle;
  return columns / kScaleBlock < kLongBlocks ? kNarrow : kDeep;
}

Fp8Choice fp8_plan(int rows, int columns, int tokens) {
  const Split split = split_for(rows, columns);
  if (split.warpgroups_along_k == 1 && split.cluster == 1 && tokens > 16 && tokens <= 64 && rows % 152 == 0) {
    return {find_or_throw(kFp8TallPlans, split, tokens), true};
  }
  return {find_or_throw(kFp8Plans, split, tokens), false};
}

Plan w8a16_plan(int rows, int columns, int tokens) { return find_or_throw(kW8a16Plans, split_for(rows, columns), tokens); }

Plan gate_up_plan(int tokens) { return find_or_throw(kGateUpPlans, {1, 4}, tokens); }

}  // namespace fish::sm90
