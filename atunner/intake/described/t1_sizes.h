// Problem sizes of a T1 file as sizes of the task, so that they can vary.
#pragma once

#include <string>
#include <vector>

#include "atunner/intake/user_kernel.h"

namespace atunner::t1 {

/// A T1 file states its problem size as a number, once more in the lengths of arguments and in
/// scalars. Where such a number reaches the kernel as a scalar, it becomes a size of the task,
/// `problem_size_x` and so on, and grid, lengths and scalars follow from it: a length that is a
/// small multiple of it or of a product of the sizes. `problem`: texts of ProblemSize. Nothing
/// changes if a long argument has another length, whose relation to the problem is not known.
void NameProblemSizes(UserKernel& kernel, const std::vector<std::string>& problem);

}  // namespace atunner::t1
