// Text and JSON on standard output.
#pragma once

#include <string>

#include "atunner/model/json/json.h"
#include "atunner/report/report.h"

namespace atunner::cli {

/// Prints one line.
void PrintJson(const Json& json);

/// The run as a small table for the terminal.
std::string RenderTable(const Report& report);

/// `text` with each control character but tab and line feed written as "\x1b": text from a file or
/// a compiler must not steer the terminal.
std::string Printable(const std::string& text);

}  // namespace atunner::cli
