// A task from a captured launch: the program is the specification.
//
// The launch's memory is the input, its grid and block are the user's own values, and the kernel as
// the program has it is oracle and baseline. Nothing is guessed from host code.
//
// Example: the launch of scale in atunner/capture/capture.h becomes
//
//     arguments   y float32[10240] output, x float32[10240] input = blob 3f2a…
//     plan        entry _Z5scalePfPKffi, grid ceil_div(10240, block_x), block block_x
//     space       block_x in {32, …, 1024}: the kernel reads %ntid.x
//                 max_registers in {0, 32, 64, 128}
//     source      the module's PTX
//
// With the source text of the kernel (UseSource) it is compiled from there instead, and macros,
// constants and template arguments become parameters too.
#pragma once

#include <string>

#include "atunner/base/files.h"
#include "atunner/capture/capture.h"
#include "atunner/intake/user_kernel.h"

namespace atunner {

/// `blobs`: folder of the capture's contents. kUnsupported says why the launch cannot be verified:
/// it was recorded without its memory, or it wrote nothing. Lists of addresses in its memory become
/// further blobs. kInvalidInput for PTX that cannot be read.
Result<UserKernel> KernelOfLaunch(const capture::Capture& capture,
                                  const capture::CapturedLaunch& launch, const Path& blobs);

/// Source files that the module's debug information names for this kernel, outermost first; empty
/// without -lineinfo.
std::vector<std::string> SourceFilesOf(const std::string& ptx, const std::string& kernel);

/// Makes the kernel be compiled from `text`, a source of the program with its own headers in it.
/// kInvalidInput if the kernel is not defined there, or if its template arguments are types that
/// have no name outside of the program.
Status UseSource(UserKernel& kernel, const std::string& readable, const std::string& text,
                 const std::string& file);

}  // namespace atunner
