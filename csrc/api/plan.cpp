#include "plan.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace fish::sm90 {
namespace {

constexpr int kMultiprocessors = 132;  // of an H200; a plan decides speed only, so other parts run the same table
constexpr int kTileRows = 64;
constexpr int kLongBlocks = 48;  // blocks of K from which four CTAs a tile beat two

// Whether a table has a plan for any number of tokens and any rows that are a multiple of 64.
template <class Table>
constexpr bool serves_all(const Table& table, Split split) {
  for (const Entry& entry : table) {
    const bool is_of_split =
        entry.plan.warpgroups_along_k == split.warpgroups_along_k && entry.plan.ctas_along_k == split.ctas_along_k;
    if (is_of_split && entry.up_to_tokens == kAnyTokens && entry.plan.weight_rows == kTileRows) return true;
  }
  return false;
}

static_assert(serves_all(kFp8Plans, kWide) && serves_all(kW8a16Plans, kWide));
static_assert(serves_all(kFp8Plans, kMiddle) && serves_all(kW8a16Plans, kMiddle));
static_assert(serves_all(kFp8Plans, kNarrow) && serves_all(kW8a16Plans, kNarrow));
static_assert(serves_all(kFp8Plans, kDeep) && serves_all(kW8a16Plans, kDeep));
static_assert(serves_all(kGateUpPlans, kWide));

// What a plan needs of shared memory, rounded up a little: SharedLayout knows it to the byte, but only once compiled.
int shared_bytes(const Plan& plan, int activation_bytes, int columns) {
  constexpr int kFloat = 4, kSmallThings = 4096;  // barriers, weight scales, alignment
  const int blocks = blocks_per_cta(columns / kScaleBlock, plan.ctas_along_k);
  const int stage = (plan.weight_rows + plan.token_tile * activation_bytes) * kScaleBlock;
  const int slab = plan.weight_rows * plan.token_tile * kFloat;
  const int ring = std::max(stage * plan.stages, slab) * plan.warpgroups_along_k;
  const int incoming = plan.ctas_along_k == 1 ? 0 : plan.token_tile >= 32 ? slab : slab * plan.warpgroups_along_k;
  const int scales = activation_bytes == 1 ? (blocks + 1) * plan.token_tile * kFloat : 0;
  const int exchange = plan.ctas_along_rows == 1 ? 0 : 100 * plan.token_tile;
  return ring + incoming + scales + exchange + 3 * blocks * kFloat + kSmallThings;
}

struct Problem {
  int rows, columns, tokens;
  int activation_bytes;
};

template <class Table>
Plan find(const Table& table, Split split, const Problem& problem) {
  for (const auto& [up_to_tokens, plan] : table) {
    const bool is_of_split =
        plan.warpgroups_along_k == split.warpgroups_along_k && plan.ctas_along_k == split.ctas_along_k;
    const bool fits = problem.rows % (plan.weight_rows * plan.ctas_along_rows) == 0 &&
                      shared_bytes(plan, problem.activation_bytes, problem.columns) <= kSharedBytes;
    if (is_of_split && fits && problem.tokens <= up_to_tokens) return plan;
  }
  throw std::runtime_error("N = " + std::to_string(problem.rows) + ", K = " + std::to_string(problem.columns) +
                           ": no kernel is compiled for a weight of this shape");
}

}  // namespace

Split split_for(int rows, int columns) {
  const int tiles = rows / kTileRows;
  if (tiles >= 2 * kMultiprocessors) return kWide;
  if (2 * tiles >= kMultiprocessors) return kMiddle;
  return columns / kScaleBlock < kLongBlocks ? kNarrow : kDeep;
}

Plan fp8_plan(int rows, int columns, int tokens) {
  return find(kFp8Plans, split_for(rows, columns), {rows, columns, tokens, 1});
}

Plan w8a16_plan(int rows, int columns, int tokens) {
  return find(kW8a16Plans, split_for(rows, columns), {rows, columns, tokens, 2});
}

Plan gate_up_plan(int rows, int columns, int tokens) { return find(kGateUpPlans, kWide, {rows, columns, tokens, 1}); }

}  // namespace fish::sm90
