// An order of a plan's steps in which fewer intermediates live at the same time. Pure.
#pragma once

#include <cstdint>

#include "atunner/model/plan/execution_plan.h"

namespace atunner::jobs {

/// The most bytes of intermediates that live at the same time, each rounded up to kPlanAlignment.
/// No placement of this order needs less.
uint64_t LiveBytes(const ExecutionPlan& plan);

/// Brings forward steps that, alone or with the steps that only they made wait, free at least as
/// many bytes as they take; the others keep their order. In a training step these are the products
/// for weights' gradients with the updates that follow: in the order of the results they would come
/// behind all gradients of activations, which would live so long. Steps that read or write the same
/// buffer, and one of them writes it, keep their order. If the new order has a larger peak, the
/// steps are left as they were.
void OrderForMemory(ExecutionPlan& plan);

}  // namespace atunner::jobs
