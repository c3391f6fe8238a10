// Programs have CUDA's runtime linked into them. Its functions are found by their symbols and sent
// here.
#pragma once

namespace atunner::program {

/// Lets the functions of CUDA's runtime interface in the program and its libraries jump to ours of
/// the same names, and those that are not answered to one that says so. To be called before the
/// program's constructors run.
void RedirectRuntime();

}  // namespace atunner::program
