// labels: property
#include "spec/model/fields.hpp"

#include <gtest/gtest.h>

#include "reference/model/model.hpp"
#include "spec/error.hpp"
#include "spec/model/trainable.hpp"
#include "tests/support/model_changes.hpp"
#include "tests/support/tiny_models.hpp"

namespace assay::reference::fields_test {
namespace {

double first_loss(const spec::ModelSpec& model, const Batch& batch) {
  return model::forward(initial_parameters(model, 7), model, batch,
                        {.normalizer = static_cast<double>(batch.valid_tokens()), .z_loss = 0})
      .loss.loss;
}

/// An allow-list is only as good as its word: what it calls computed moves the loss, what it calls without
/// effect leaves every bit of it, and what the reference refuses it does not compute.
TEST(ModelFields, EachThatTheReferenceComputesMovesItsLoss) {
  const Batch batch =
      tests::tiny_batch(tests::changed_model(), 2, 16, tests::Documents::whole, tests::Ignored::none, 3);
  tests::for_each_change(
      tests::changed_model(), [&](const std::string& field, const spec::ModelSpec& before,
                                  const spec::ModelSpec& after, const std::string& refusal, unsigned moves) {
        SCOPED_TRACE(field);
        const std::string uncomputed = spec::uncomputed_feature(after);
        // The reference computes all that trains; what both refuse they call alike.
        EXPECT_EQ(uncomputed, uncomputed.empty() ? "" : spec::untrainable_feature(after));
        if (refusal.empty()) {
          EXPECT_EQ(uncomputed, "");
        }
        if (uncomputed.empty())
          EXPECT_EQ(first_loss(before, batch) != first_loss(after, batch), (moves & tests::loss) != 0);
        else
          EXPECT_THROW(first_loss(after, batch), UserError);
      });
}

}  // namespace
}  // namespace assay::reference::fields_test
