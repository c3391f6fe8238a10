#include "atunner/rewrites/tree/statement.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace atunner::rewrites {
namespace {

using Kind = Statement::Kind;

/// "for(expression) if(block(return) expression)": kinds with their children.
std::string Shape(const std::vector<Statement>& statements) {
  static constexpr const char* kNames[] = {"block",  "for",         "while",      "if",
                                           "return", "declaration", "expression", "directive"};
  std::string text;
  for (const Statement& statement : statements) {
    text += (text.empty() ? "" : " ") + std::string(kNames[static_cast<int>(statement.kind)]);
    if (!statement.children.empty()) text += "(" + Shape(statement.children) + ")";
  }
  return text;
}

std::string ShapeOfText(const std::string& body) {
  const CudaSyntax syntax = ParseCuda(body);
  return Shape(ParseStatements(syntax, {0, syntax.lexed.tokens.size()}));
}

TEST(Statements, FormATree) {
  EXPECT_EQ(ShapeOfText("int i = 0; i += 2; if (i < n) return; else { x[i] = 1; f(i); }"),
            "declaration expression if(return block(expression expression))");
  EXPECT_EQ(ShapeOfText("#pragma unroll\nfor (int i = 0; i < n; ++i) s += x[i];\n"),
            "directive for(expression)");
  EXPECT_EQ(ShapeOfText("do { ++i; } while (i < n); while (go) step(); ;"),
            "while(block(expression)) while(expression)");
}

TEST(Statements, KnowDeclarations) {
  EXPECT_EQ(ShapeOfText("const float* p = x; unsigned int n; __shared__ float t[32][33]; dim3 g(1);"
                        " float2 a, b; std::pair<int, int> q; auto r = 1;"),
            "declaration declaration declaration declaration declaration declaration declaration");
  EXPECT_EQ(ShapeOfText("a = b; f(x); a[i] += 1; *p = 2; goto end;"),
            "expression expression expression expression expression");
}

TEST(Statements, HaveTheHeadsOfLoops) {
  const CudaSyntax syntax = ParseCuda("for (int i = f(a, b); i < n; i += 2) { s += i; }");
  const auto statements = ParseStatements(syntax, {0, syntax.lexed.tokens.size()});
  ASSERT_EQ(statements.size(), 1U);
  EXPECT_EQ(syntax.Text(statements[0].init), "int i = f(a, b)");
  EXPECT_EQ(syntax.Text(statements[0].condition), "i < n");
  EXPECT_EQ(syntax.Text(statements[0].step), "i += 2");
  EXPECT_EQ(syntax.Text(statements[0].range), "for (int i = f(a, b); i < n; i += 2) { s += i; }");
}

TEST(Statements, EndWithBrokenText) {
  for (const char* text :
       {"for (", "if (x", "{ { {", "do", "while", "for (;;", "else", "return", "("})
    EXPECT_FALSE(ShapeOfText(text).empty()) << text;
}

TEST(Statements, MentionNamesThatAreNoMembers) {
  const CudaSyntax syntax = ParseCuda("p.x + y->x + xs");
  EXPECT_FALSE(Mentions(syntax, {0, syntax.lexed.tokens.size()}, "x"));
  EXPECT_TRUE(Mentions(syntax, {0, syntax.lexed.tokens.size()}, "xs"));
}

}  // namespace
}  // namespace atunner::rewrites
