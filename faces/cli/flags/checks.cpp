#include "faces/cli/flags/checks.h"

namespace atunner::cli {
namespace {

CLI::Validator Above(const char* name, const char* what, bool (*holds)(double)) {
  return {[=](std::string& text) {
            double value = 0;
            const bool read = CLI::detail::lexical_cast(text, value);
            return read && holds(value) ? std::string() : "'" + text + "' is " + what;
          },
          name};
}

}  // namespace

const CLI::Validator& Positive() {
  static const CLI::Validator check = Above("POSITIVE", "not above 0",
                                            [](double value) { return value > 0; });
  return check;
}

const CLI::Validator& NotNegative() {
  static const CLI::Validator check = Above("NONNEGATIVE", "below 0",
                                            [](double value) { return value >= 0; });
  return check;
}

}  // namespace atunner::cli
