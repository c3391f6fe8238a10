#include "atunner/ptx/operand_parser.h"

#include <algorithm>

namespace atunner::ptx {
namespace {

/// Operands nest twice at most: a vector in an address.
constexpr int kMaxOperandDepth = 16;

constexpr std::string_view kSpecials[] = {"%tid",
                                          "%ntid",
                                          "%laneid",
                                          "%warpid",
                                          "%nwarpid",
                                          "%ctaid",
                                          "%nctaid",
                                          "%smid",
                                          "%nsmid",
                                          "%gridid",
                                          "%clock",
                                          "%clock64",
                                          "%clock_hi",
                                          "%globaltimer",
                                          "%globaltimer_lo",
                                          "%globaltimer_hi",
                                          "%lanemask_eq",
                                          "%lanemask_le",
                                          "%lanemask_lt",
                                          "%lanemask_ge",
                                          "%lanemask_gt",
                                          "%dynamic_smem_size",
                                          "%total_smem_size",
                                          "%aggr_smem_size",
                                          "%current_graph_exec",
                                          "%cluster_ctaid",
                                          "%cluster_nctaid",
                                          "%cluster_ctarank",
                                          "%cluster_nctarank",
                                          "%clusterid",
                                          "%nclusterid",
                                          "%is_explicit_cluster",
                                          "%warpsize"};

bool IsSpecial(std::string_view name) {
  const std::string_view base = name.substr(0, name.find('.'));
  for (std::string_view numbered : {"%envreg", "%reserved_smem_offset_", "%pm"}) {
    if (base.starts_with(numbered)) return true;
  }
  return std::ranges::find(kSpecials, base) != std::end(kSpecials);
}

/// True if a token can begin a constant.
bool BeginsConstant(std::string_view token) {
  const bool fraction = token.size() > 1 && token[0] == '.' && token[1] <= '9';
  return std::string_view("0123456789-+~!(").find(token[0]) != std::string_view::npos || fraction ||
         token == "WARP_SZ";
}

}  // namespace

Result<Operand> OperandParser::Parse(bool in_call) {
  in_call_ = in_call;
  return ParseNested();
}

Result<Operand> OperandParser::ParseNested() {
  if (depth_ >= kMaxOperandDepth) return tokens_.Bad("operands are nested too deeply");
  ++depth_;
  Result<Operand> operand = OfAnyKind();
  --depth_;
  return operand;
}

Result<Operand> OperandParser::OfAnyKind() {
  if (tokens_.Accept("{")) return Vector("}");
  if (in_call_ && tokens_.Accept("(")) return Vector(")");
  if (tokens_.Accept("[")) return Address();
  const std::string_view token = tokens_.Peek();
  if (token.empty()) return tokens_.Bad("expected an operand");
  if ((token == "!" || token == "-") && IsRegister(tokens_.Peek(1))) return Prefixed();
  if (token == "_") {
    Operand sink;
    tokens_.Next();
    if (tokens_.Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(sink));
    return sink;
  }
  if (BeginsConstant(token)) return constants_.Immediate();
  if (auto vector = names_.VectorRegister(token)) return tokens_.Next(), *std::move(vector);
  if (IsRegister(token)) return RegisterOperand();
  return Name();
}

Result<Operand> OperandParser::Vector(std::string_view close) {
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  while (!tokens_.Accept(close)) {
    if (tokens_.End()) return tokens_.Bad("vector without end");
    ATUNNER_TRY(Operand element, ParseNested());
    operand.elements.push_back(std::move(element));
    tokens_.Accept(",");
  }
  if (close == "}" && tokens_.Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
  return operand;
}

Result<Operand> OperandParser::Prefixed() {
  const bool minus = tokens_.Next() == "-";
  ATUNNER_TRY(Operand operand, ParseNested());
  (minus ? operand.minus : operand.negated) = true;
  return operand;
}

Result<Operand> OperandParser::RegisterOperand() {
  Operand operand;
  operand.kind = Operand::Kind::kRegister;
  const std::string_view token = tokens_.Next();
  if (const size_t point = PartOf(token); point != std::string_view::npos) {
    operand.reg = names_.FindRegister(token.substr(0, point));
    operand.part = token.substr(point + 1);
    return operand;
  }
  operand.reg = names_.FindRegister(token);
  if (tokens_.Accept("|")) ATUNNER_RETURN_IF_ERROR(Second(operand));
  ATUNNER_TRY(operand.bits, constants_.Offset());
  return operand;
}

Result<Operand> OperandParser::Name() {
  const std::string_view token = tokens_.Peek();
  if (!IsWordStart(token[0])) return tokens_.Bad("unexpected '" + std::string(token) + "'");
  Operand operand;
  operand.kind = IsSpecial(token) ? Operand::Kind::kSpecial : Operand::Kind::kSymbol;
  if (operand.kind == Operand::Kind::kSymbol && token.starts_with('%'))
    return tokens_.Bad("unknown register '" + std::string(token) + "'");
  operand.name = names_.Renamed(tokens_.Next());
  if (operand.kind == Operand::Kind::kSymbol) {
    ATUNNER_TRY(operand.bits, constants_.Offset());
  }
  return operand;
}

bool OperandParser::IsRegister(std::string_view token) const {
  return names_.FindRegister(token) >= 0 || PartOf(token) != std::string_view::npos;
}

size_t OperandParser::PartOf(std::string_view token) const {
  const size_t point = token.rfind('.');
  if (point == std::string_view::npos || point + 2 >= token.size()) return std::string_view::npos;
  const std::string_view part = token.substr(point + 1);
  const bool named = (part[0] == 'b' || part[0] == 'h') &&
                     part.find_first_not_of("01234567", 1) == std::string_view::npos &&
                     part.size() <= 5;
  return named && names_.FindRegister(token.substr(0, point)) >= 0 ? point : std::string_view::npos;
}

Status OperandParser::Second(Operand& operand) {
  const std::string_view second = tokens_.Next();
  if (second == "_") return {};
  const int reg = names_.FindRegister(second);
  if (reg < 0) return tokens_.Bad("unknown register '" + std::string(second) + "'");
  operand.second = reg;
  return {};
}

Result<Operand> OperandParser::Address() {
  Operand operand;
  operand.kind = Operand::Kind::kAddress;
  const std::string_view token = tokens_.Peek();
  if (const int reg = names_.FindRegister(token); reg >= 0) {
    tokens_.Next();
    operand.reg = reg;
  } else if (!token.empty() && IsWordStart(token[0])) {
    operand.name = names_.Renamed(tokens_.Next());
  } else {
    ATUNNER_TRY(const Operand absolute, constants_.Immediate());
    operand.bits = absolute.bits;
  }
  ATUNNER_TRY(const uint64_t offset, constants_.Offset());
  operand.bits += offset;
  while (tokens_.Accept(",")) {
    ATUNNER_TRY(Operand element, ParseNested());
    operand.elements.push_back(std::move(element));
  }
  if (!tokens_.Accept("]")) return tokens_.Bad("expected ']'");
  return operand;
}

}  // namespace atunner::ptx
