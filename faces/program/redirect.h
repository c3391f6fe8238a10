// Programs have CUDA's runtime linked into them. Its functions are found by their symbols, and
// jumps to the functions of this library are written over them.
#pragma once

namespace atunner::program {

/// Lets the functions of CUDA's runtime interface in the program and its libraries jump to the
/// functions of the same names in this library. Functions that are not implemented jump to one that
/// reports them. Must be called before the program's constructors run.
void RedirectRuntime();

/// Reports a call of a function that is not implemented. Returns its error code.
int NotAnswered(const char* name);

}  // namespace atunner::program
