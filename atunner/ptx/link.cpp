#include "atunner/ptx/link.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "atunner/ptx/lexer.h"

namespace atunner::ptx {
namespace {

/// A top-level item of a module: a function, a variable or a directive.
struct Item {
  size_t begin = 0, end = 0;  ///< range of tokens
  size_t body = 0;            ///< the token that opens a function's body; 0 = declaration only
  std::string kind;           ///< ".func", ".global", …
  std::string name;
  bool is_local = true;  ///< other modules do not see it
  bool is_extern = false;
  bool is_weak = false;  ///< other modules may define it too
  bool IsFunction() const { return kind == ".func" || kind == ".entry"; }
  bool IsVariable() const { return kind == ".global" || kind == ".const" || kind == ".shared"; }
  bool Defines() const { return !is_extern && (!IsFunction() || body != 0); }
};

struct Unit {
  std::vector<Token> tokens;
  std::vector<Item> items;
  std::map<std::string, std::string, std::less<>> renamed;
  uint32_t first_file = 0;  ///< added to its file numbers
};

/// Finds where the items of a module begin and end.
class Splitter {
 public:
  explicit Splitter(Unit& unit) : unit_(unit), tokens_(unit.tokens) {}

  Status Run() {
    while (at_ < tokens_.size()) {
      Item item;
      item.begin = at_;
      for (;
           Text() == ".visible" || Text() == ".extern" || Text() == ".weak" || Text() == ".common";
           ++at_) {
        item.is_local = false;
        item.is_extern |= Text() == ".extern";
        item.is_weak |= Text() == ".weak" || Text() == ".common";
      }
      item.kind = std::string(Text());
      if (item.kind.empty() || item.kind[0] != '.') return Invalid("this is not PTX", "PTX");
      ++at_;
      if (item.IsFunction() || item.IsVariable())
        Declaration(item);
      else
        Directive(item.kind);
      item.end = at_;
      unit_.items.push_back(std::move(item));
    }
    return {};
  }

 private:
  std::string_view Text() const {
    return at_ < tokens_.size() ? tokens_[at_].text : std::string_view();
  }
  bool IsName() const { return !Text().empty() && IsWordStart(Text()[0]) && Text()[0] != '.'; }
  void Skip(std::string_view open, std::string_view close) {
    int depth = 0;
    do {
      depth += Text() == open ? 1 : Text() == close ? -1 : 0;
      ++at_;
    } while (depth > 0 && at_ < tokens_.size());
  }

  /// The name is the first word outside parentheses, which hold a variable's attributes or a
  /// function's results.
  void Declaration(Item& item) {
    for (; at_ < tokens_.size() && Text() != ";"; ++at_) {
      if (Text() == "(") {
        Skip("(", ")");
        --at_;
      } else if (Text() == "{" && item.IsFunction()) {
        item.body = at_;
        return Skip("{", "}");
      } else if (item.name.empty() && IsName()) {
        item.name = std::string(Text());
      }
    }
    ++at_;
  }

  void Directive(const std::string& kind) {
    if (kind == ".section") {
      while (at_ < tokens_.size() && Text() != "{") ++at_;
      return Skip("{", "}");
    }
    if (kind == ".alias" || kind == ".pragma") {
      while (at_ < tokens_.size() && Text() != ";") ++at_;
      ++at_;
      return;
    }
    ++at_;  // .version, .target, .address_size and .file have an operand at least
    while (at_ < tokens_.size() && !Text().starts_with('.')) ++at_;
  }

  Unit& unit_;
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
};

class Linker {
 public:
  explicit Linker(std::vector<Unit> units) : units_(std::move(units)) {}

  Result<std::string> Run() {
    ATUNNER_RETURN_IF_ERROR(FindDefinitions());
    MakeUnique();
    Heads();
    for (Unit& unit : units_) {
      for (const Item& item : unit.items) {
        if (item.kind == ".func") Prototype(unit, item);
      }
    }
    for (const bool functions : {false, true}) {
      for (Unit& unit : units_) {
        for (const Item& item : unit.items) {
          const bool wanted = functions ? item.body != 0 || item.kind == ".alias"
                                        : item.IsVariable();
          if (wanted && IsKept(item)) Write(unit, item.begin, item.end);
        }
      }
    }
    return std::move(text_);
  }

 private:
  /// Definitions that others see: the first, or the only one that is not weak.
  Status FindDefinitions() {
    for (const Unit& unit : units_) {
      for (const Item& item : unit.items) {
        if (item.is_local || !item.Defines() || item.name.empty()) continue;
        const Item*& known = definitions_[item.name];
        if (known != nullptr && !known->is_weak && !item.is_weak)
          return Invalid("'" + item.name + "' is defined in several modules", "PTX");
        if (known == nullptr || (known->is_weak && !item.is_weak)) known = &item;
      }
    }
    return {};
  }

  /// Gives unique names to local names of modules, and to arrays in dynamic shared memory.
  void MakeUnique() {
    std::set<std::string> taken;
    for (size_t i = 0; i < units_.size(); ++i) {
      std::set<std::string> own;
      for (const Item& item : units_[i].items) {
        const bool dynamic = item.is_extern && item.kind == ".shared";
        if (item.name.empty()) continue;
        own.insert(item.name);
        if ((item.is_local || dynamic) &&
            (taken.contains(item.name) || definitions_.contains(item.name)))
          units_[i].renamed[item.name] = item.name + "$" + std::to_string(i);
      }
      taken.merge(own);
    }
  }

  /// The newest version and target, and all names of files.
  void Heads() {
    std::string version, target;
    for (Unit& unit : units_) {
      unit.first_file = static_cast<uint32_t>(&unit - units_.data()) * kFilesEach;
      for (const Item& item : unit.items) {
        const auto operand = std::string(
            unit.tokens[std::min(item.begin + 1, unit.tokens.size() - 1)].text);
        if (item.kind == ".version" && Number(operand) > Number(version)) version = operand;
        if (item.kind == ".target" && Arch(operand) > Arch(target)) target = operand;
        if (item.kind == ".file") Write(unit, item.begin, item.end);
      }
    }
    if (!version.empty()) version = ".version " + version + "\n";
    text_ = version + ".target " + target + "\n.address_size 64\n" + text_;
  }
  static double Number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }
  /// "sm_90a" is more than "sm_90".
  static double Arch(const std::string& target) {
    const size_t at = target.find('_');
    return at == std::string::npos
               ? 0
               : Number(target.substr(at + 1)) + (std::isalpha(target.back()) ? 0.5 : 0);
  }

  bool IsKept(const Item& item) {
    if (item.is_local || (item.is_extern && item.kind == ".shared")) return true;
    const auto definition = definitions_.find(item.name);
    if (definition != definitions_.end()) return definition->second == &item;
    return declared_.insert(item.name).second;
  }

  void Prototype(Unit& unit, const Item& item) {
    if (!IsKept(item)) return;
    Write(unit, item.begin, item.body != 0 ? item.body : item.end);
    if (item.body != 0) text_ += ";\n";
  }

  /// True where a .loc goes on with ", function_name LABEL, inlined_at FILE LINE COLUMN". The label
  /// lies in a debug section, which the linked module does not have.
  static bool NamesFunction(const Unit& unit, size_t at) {
    return at + 1 < unit.tokens.size() && unit.tokens[at].text == "," &&
           unit.tokens[at + 1].text == "function_name";
  }

  void Write(const Unit& unit, size_t begin, size_t end) {
    std::string_view before;
    for (size_t i = begin; i < std::min(end, unit.tokens.size()); ++i) {
      if (NamesFunction(unit, i)) {
        while (i + 1 < end && unit.tokens[i + 1].line == unit.tokens[i].line) ++i;
        continue;
      }
      const std::string_view word = unit.tokens[i].text;
      if (i > begin) text_ += unit.tokens[i].line != unit.tokens[i - 1].line ? '\n' : ' ';
      const auto renamed = unit.renamed.find(word);
      if (before == ".file" || before == ".loc" || before == "inlined_at")
        text_ += std::to_string(std::strtoul(std::string(word).c_str(), nullptr, 10) +
                                unit.first_file);
      else
        text_ += renamed == unit.renamed.end() ? word : std::string_view(renamed->second);
      before = word;
    }
    text_ += '\n';
  }

  static constexpr uint32_t kFilesEach = 100000;
  std::vector<Unit> units_;
  std::map<std::string, const Item*> definitions_;
  std::set<std::string> declared_;  ///< and defined by none of the modules
  std::string text_;
};

}  // namespace

Result<std::string> Link(std::span<const std::string> texts) {
  std::vector<Unit> units(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    ATUNNER_TRY(units[i].tokens, Tokens(texts[i]));
    if (units[i].tokens.empty()) return Invalid("there is no text", "PTX");
    ATUNNER_RETURN_IF_ERROR(Splitter(units[i]).Run());
  }
  return Linker(std::move(units)).Run();
}

}  // namespace atunner::ptx
