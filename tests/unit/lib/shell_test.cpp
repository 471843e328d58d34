// SPDX-License-Identifier: Apache-2.0
#include "lib/shell.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace rayhook {
namespace {

constexpr std::array<std::string_view, 2> kNames = {"H", "P"};

std::string_view word(ShellDoubt doubt) {
  switch (doubt) {
    case ShellDoubt::none:
      return "none";
    case ShellDoubt::unterminated:
      return "unterminated";
    case ShellDoubt::sets_variables:
      return "sets_variables";
    case ShellDoubt::field_separator:
      return "field_separator";
    case ShellDoubt::unreadable:
      return "unreadable";
    case ShellDoubt::unknown_text:
      return "unknown_text";
  }
  return "?";
}

/// The text with each certain reference as @NAME, @@NAME where it is a whole word; or the doubt.
std::string marked(std::string_view text, const ShellScan& scan) {
  if (scan.doubt != ShellDoubt::none) {
    EXPECT_TRUE(scan.sure.empty());
    return "doubt: " + std::string(word(scan.doubt));
  }
  std::string out;
  std::size_t done = 0;
  for (const ShellReference& reference : scan.sure) {
    EXPECT_GE(reference.begin, done);
    out.append(text.substr(done, reference.begin - done));
    out.append(reference.whole_word ? "@@" : "@").append(reference.name);
    done = reference.end;
  }
  return out.append(text.substr(done));
}

/// As in a hook, where kubelet expands nothing.
std::string hook(std::string_view text) {
  return marked(text, scan_shell(text, kNames, {false, [](std::string_view) {
                                                  ADD_FAILURE() << "asked for a name";
                                                  return ParenName::unknown;
                                                }}));
}

/// As in command and args. $(V) is harmless, $(U) unknown.
std::string args(std::string_view text) {
  return marked(text, scan_shell(text, kNames, {true, [](std::string_view name) {
                                                  if (name == "V") return ParenName::harmless;
                                                  if (name == "U") return ParenName::unknown;
                                                  return ParenName::not_expanded;
                                                }}));
}

/// A text without `$$` and `$(`, which must be read alike with and without kubelet.
std::string shell(std::string_view text) {
  const std::string out = hook(text);
  if (!text.contains("$$") && !text.contains("$(")) {
    EXPECT_EQ(args(text), out);
  }
  return out;
}

/// The reference in the text stays, all others are certain.
void expect_left(std::string_view text) { EXPECT_EQ(shell(text), text) << text; }

constexpr std::string_view kSets = "doubt: sets_variables";
constexpr std::string_view kUnreadable = "doubt: unreadable";
constexpr std::string_view kUnterminated = "doubt: unterminated";
constexpr std::string_view kFieldSeparator = "doubt: field_separator";
constexpr std::string_view kUnknown = "doubt: unknown_text";

/// Found by tests/fuzz/shell_fuzz: the second of two was left, and certain once the first had gone.
TEST(ShellReferences, OfTwoThatTouchNeitherIsReplaced) {
  expect_left("echo $H$P");
  expect_left("cat <$H$H");
  expect_left("echo \"$H$H$P\"");
  EXPECT_EQ(shell("echo ${H}$P $H${P}"), "echo @H@P $H${P}");
  EXPECT_EQ(shell("echo $H$OTHER"), "echo @H$OTHER");
}

TEST(ShellReferences, SpellingsThatAreCertain) {
  EXPECT_EQ(shell("ray start --address=$H:$P --block"), "ray start --address=@H:@P --block");
  EXPECT_EQ(shell("ray start --address=${H}:${P}"), "ray start --address=@H:@P");
  EXPECT_EQ(shell("ray start --address \"$H:$P\""), "ray start --address \"@H:@P\"");
  EXPECT_EQ(shell("a --address=\"${H}\":6379"), "a --address=\"@H\":6379");
  EXPECT_EQ(shell("curl http://$H:8000/hello"), "curl http://@H:8000/hello");
  EXPECT_EQ(shell("until nc -z $H $P; do sleep 1; done; ray start --address=$H:$P"),
            "until nc -z @@H @@P; do sleep 1; done; ray start --address=@H:@P");
  EXPECT_EQ(shell("bash init.sh &&  a $H\nb $P & c [$H]:1"),
            "bash init.sh &&  a @@H\nb @@P & c [@H]:1");
  EXPECT_EQ(shell("export RAY_ADDRESS=ray://$H:$P; python x.py"),
            "export RAY_ADDRESS=ray://@H:@P; python x.py");
  EXPECT_EQ(shell("RAY_ADDRESS=$H:$P python x.py"), "RAY_ADDRESS=@H:@P python x.py");
  EXPECT_EQ(shell("A=$H"), "A=@H");
  EXPECT_EQ(shell("a \\\n  --x=$H \\\n  --y=${P}\n"), "a \\\n  --x=@H \\\n  --y=@P\n");
  EXPECT_EQ(shell("a \"{\\\"NPU\\\": ${N}, \\\"$H\\\"}\""),
            "a \"{\\\"NPU\\\": ${N}, \\\"@H\\\"}\"");
  EXPECT_EQ(shell("if [ -n \"$H\" ]; then a $H; else b $P; fi"),
            "if [ -n \"@H\" ]; then a @@H; else b @@P; fi");
  EXPECT_EQ(shell("for i in 1 $H; do a $i:$P; done"), "for i in 1 @@H; do a $i:@P; done");
  EXPECT_EQ(shell("case $H in $P) a $H;; *) b;; esac"), "case @@H in @@P) a @@H;; *) b;; esac");
  EXPECT_EQ(shell("f() { a $H; }; f $P"), "f() { a @@H; }; f @@P");
  EXPECT_EQ(shell("(a $H) | b $P"), "(a @@H) | b @@P");
  EXPECT_EQ(shell("a $H\r\nb $P\r\n"), "a @H\r\nb @P\r\n");
  EXPECT_EQ(shell("a \xff$H\xc3\xa9 ${P}\xc3\xa9"), "a \xff$H\xc3\xa9 @P\xc3\xa9");
}

TEST(ShellReferences, NamesAreWholeIdentifiers) {
  expect_left("a $HOST $H_ $H2 ${HOST} ${H2} $_H $2H $h");
  EXPECT_EQ(shell("a $H-x $H.x $H/x $H:x ${H}x"), "a @H-x @H.x @H/x @H:x @Hx");
}

TEST(ShellReferences, WordsAreSeen) {
  EXPECT_EQ(shell("a $H x$H $H. \"$H\" $H;b $H|c $H&d $H\n"),
            "a @@H x@H @H. \"@H\" @@H;b @@H|c @@H&d @@H\n");
  EXPECT_EQ(shell("a >$H <${H}\n"), "a >@@H <@@H\n");
}

TEST(ShellQuotes, DecideWhatIsExpanded) {
  expect_left("a '$H' '${H}'");
  expect_left("a \\$H \"\\$H\" \\\\\\$H");
  EXPECT_EQ(shell("a \\\\$H \"\\\\$H\" \"\\a$H\""), "a \\\\@H \"\\\\@H\" \"\\a@H\"");
  EXPECT_EQ(shell("a \"'$H'\" '\"$H\"'"), "a \"'@H'\" '\"$H\"'");
  EXPECT_EQ(shell("a \"\\\"$H\\\"\""), "a \"\\\"@H\\\"\"");
  EXPECT_EQ(shell("a 'x'$H'y'\"$P\""), "a 'x'@H'y'\"@P\"");
  EXPECT_EQ(shell("a $'x y' $H"), "a $'x y' @@H");
  EXPECT_EQ(shell("a $'x\\'' $H"), kUnreadable);  // bash: one quote; dash: two
  expect_left("a $'$H'");
  expect_left("a $\"$H\"");  // bash looks its text up in a catalogue
  EXPECT_EQ(shell("a \"$'$H'\""), "a \"$'@H'\"");
  for (const char* text :
       {"a '$H", "a \"$H", "a `$H", "a ${H", "a ${H:-", "a $H \\", "a $(b $H", "a $H $(("})
    EXPECT_EQ(hook(text), kUnterminated) << text;
}

TEST(ShellExpansions, OtherFormsAreSkippedWhole) {
  expect_left("a ${H:-x} ${#H} ${H%.*} ${H##*.} ${H+x} ${H/a/b} ${!H} ${!H*}");
  expect_left("a ${X:-$H} ${X:-\"$H\"} \"${X:-$H}\" ${X:-${Y:-$H}} ${X:-`$H`}");
  EXPECT_EQ(shell("a ${X:-'}'} $H"), "a ${X:-'}'} @@H");
  EXPECT_EQ(shell("a \"${X:-'}\" $H"), kUnreadable);  // where that ends is disputed
  EXPECT_EQ(shell("a \"${X:-\"b\"}\" $H"), kUnreadable);
  EXPECT_EQ(shell("a ${X:-\\}} $H"), "a ${X:-\\}} @@H");
  EXPECT_EQ(shell("a ${X:-{} $H"), "a ${X:-{} @@H");
  EXPECT_EQ(shell("a $1 $? $# $! $- $@ $* $0 $ $% $H"), "a $1 $? $# $! $- $@ $* $0 $ $% @@H");
  EXPECT_EQ(hook("a $$ $$$H"), "a $$ $$$H");  // after the pid plain text would do, too
  EXPECT_EQ(hook("a $$H $P"), "a $$H @@P");   // the pid, then the letter H
  EXPECT_EQ(shell("a $[1+1] $H"), kUnreadable);
  EXPECT_EQ(shell("a ${ b; } $H"), kUnreadable);  // bash 5.3 runs it here
  EXPECT_EQ(shell("a ${H@P} $P"), kSets);
}

TEST(ShellExpansions, SubstitutionsAreSkippedWhole) {
  EXPECT_EQ(hook("a $(b $H) $P"), "a $(b $H) @@P");
  EXPECT_EQ(hook("a \"$(b \"$H\")\" $P"), "a \"$(b \"$H\")\" @@P");
  EXPECT_EQ(hook("a $(b ')' \")\" \\) $(c) (d) ) $P"), "a $(b ')' \")\" \\) $(c) (d) ) @@P");
  EXPECT_EQ(shell("a `b $H` $P"), "a `b $H` @@P");
  EXPECT_EQ(shell("a \"`b \\`c\\` \\\"$H\\\"`\" $P"), "a \"`b \\`c\\` \\\"$H\\\"`\" @@P");
  EXPECT_EQ(hook("a $((1 + (2 * $P))) $H"), "a $((1 + (2 * $P))) @@H");
  EXPECT_EQ(hook("a <(b $H) $P"), "a <(b $H) @@P");
  EXPECT_EQ(hook("a $((b) | c) $P))"), kUnreadable);  // dash reads on to the `))`
  EXPECT_EQ(hook("a $((1)) $(((1))) $((((1))+1)) $P"), "a $((1)) $(((1))) $((((1))+1)) @@P");
  EXPECT_EQ(hook("a ${X:-<(b)} $P"), kUnreadable);
  EXPECT_EQ(hook("a $(case x in x) b;; esac) $P"), kUnreadable);
  EXPECT_EQ(hook("a $(b # )\n) $P"), kUnreadable);
  EXPECT_EQ(hook("a $(cat <<E\n)\nE\n) $P"), kUnreadable);
  EXPECT_EQ(hook("a $( ((1)) ) $P"), kUnreadable);
  EXPECT_EQ(hook("a $([[ x =~ [)] ]]) $P"), kUnreadable);
  EXPECT_EQ(shell("a $P; ((i++))"), kUnreadable);
  EXPECT_EQ(shell("for ((;;)); do a $P; done"), kUnreadable);
  // Nothing in them changes the script's variables.
  EXPECT_EQ(hook("a $(H=1; . b; eval c) $H"), "a $(H=1; . b; eval c) @@H");
  EXPECT_EQ(hook("a `H=1` $H"), "a `H=1` @@H");
}

TEST(ShellExpansions, PythonInASubstitution) {  // corpus n03
  const std::string call =
      "$(python -c 'import socket;import sys; "
      "sys.stdout.write(socket.gethostbyname(\\\"ray-head\\\"));sys.stdout.flush()')";
  for (const std::string& text : {"ray start --redis-address=" + call + ":6379 --x=$H",
                                  "ray start --redis-address=\"" + call + "\":6379 --x=$H"}) {
    const std::string expected = text.substr(0, text.size() - 2) + "@H";
    EXPECT_EQ(hook(text), expected);
    EXPECT_EQ(args(text), expected);
  }
}

TEST(ShellComments, AreNotRead) {
  EXPECT_EQ(shell("# it's $H\na $H # $H \"\n#\n\tb $P;# `"),
            "# it's $H\na @@H # $H \"\n#\n\tb @@P;# `");
  EXPECT_EQ(shell("a x#$H \\\n# $P\n"), "a x#@H \\\n# $P\n");
  EXPECT_EQ(shell("a x\\\n#$P\n"), "a x\\\n#@P\n");
  EXPECT_EQ(shell("a # x \\\nb $P"), "a # x \\\nb @@P");
}

TEST(ShellHereDocuments, ExpandUnlessQuoted) {
  EXPECT_EQ(shell("cat <<E\n$H '$H' \"${P}\" \\$H `b $H` \\\\$H\nE\na $H"),
            "cat <<E\n@H '@H' \"@P\" \\$H `b $H` \\\\@H\nE\na @@H");
  for (const char* word : {"'E'", "\"E\"", "\\E", "- 'E'"}) {
    const std::string begin = "cat <<" + std::string(word) + " >f\n$H it's `\nE\na ";
    EXPECT_EQ(shell(begin + "$H"), begin + "@@H");
  }
  EXPECT_EQ(shell("cat <<-E\n\t$H\n\tE\na $P"), "cat <<-E\n\t@H\n\tE\na @@P");
  EXPECT_EQ(shell("a <<A <<'B'\n$H\nA\n$H\nB\nb $P"), "a <<A <<'B'\n@H\nA\n$H\nB\nb @@P");
  EXPECT_EQ(shell("if a; then cat <<E\nE $H\n E\nE\nfi; b $P"),
            "if a; then cat <<E\nE @H\n E\nE\nfi; b @@P");
  EXPECT_EQ(shell("cat <<E | b $P\n$H\nE"), "cat <<E | b @@P\n@H\nE");
  EXPECT_EQ(shell("cat <<E\r\n$H\r\nE\r\na $P"), "cat <<E\r\n@H\r\nE\r\na @@P");
  EXPECT_EQ(shell("cat <<<$H; a <<< \"$P\""), "cat <<<@@H; a <<< \"@P\"");
  EXPECT_EQ(shell("python - <<E\nos.environ['H'] $H\nE\n"),
            "python - <<E\nos.environ['H'] @H\nE\n");
}

TEST(ShellHereDocuments, Doubts) {
  EXPECT_EQ(shell("cat <<E\n$H\n"), kUnterminated);
  EXPECT_EQ(shell("cat <<E\n$H\n E"), kUnterminated);
  EXPECT_EQ(shell("cat <<E $H"), kUnterminated);
  EXPECT_EQ(shell("cat <<E\na\\\n$H\nE\n"), kUnreadable);
  for (const char* word : {"$H", "E'F'", "'E'F", "`a`", "''", "E\\F", "'E", "E\"\""})
    EXPECT_EQ(shell("cat <<" + std::string(word) + "\n$H\nE\n"), kUnreadable) << word;
  EXPECT_EQ(shell("cat <<E '\n$H\nE\n'"), kUnreadable);
  EXPECT_EQ(shell("cat <<E \"\n$H\nE\n\""), kUnreadable);
  EXPECT_EQ(shell("cat <<E\n${X:-\n}$H\nE\n"), kUnreadable);
  EXPECT_EQ(hook("cat <<E\n$(a\n)$H\nE\n"), kUnreadable);
  EXPECT_EQ(shell("cat <<E\n`a\n`$H\nE\n"), kUnreadable);
  EXPECT_EQ(shell("cat <\\\n<E\n'\nE\na $H'"), kUnreadable);
}

TEST(ShellHereDocuments, PlainTextMustNotEndThem) {
  expect_left("cat <<head\n$H\nhead\n");
  expect_left("cat <<head\nhe${H}\nhead\n");
  EXPECT_EQ(shell("cat <<head\nhex${H}\nhead\n"), "cat <<head\nhex@H\nhead\n");
  EXPECT_EQ(shell("cat <<Head\n$H\nHead\n"), "cat <<Head\n@H\nHead\n");
  expect_left("cat <<-1\n\t$H$P\n1\n");
}

TEST(ShellContinuations, JoinWhatTheyStandBetween) {
  EXPECT_EQ(shell("a $H\\\nNAME $P"), kUnreadable);
  EXPECT_EQ(shell("a \"$H\\\nNAME\" $P"), kUnreadable);
  EXPECT_EQ(shell("a $\\\nH"), kUnreadable);
  EXPECT_EQ(shell("a $\\\n(b) $H"), kUnreadable);
  EXPECT_EQ(shell("ev\\\nal b; a $H"), kUnreadable);
  EXPECT_EQ(shell("a H\\\n\\\n=1; a $P"), "a H\\\n\\\n=1; a @@P");
  EXPECT_EQ(shell("a $H\\\n:$P\\\n b"), "a @H\\\n:@P\\\n b");
  EXPECT_EQ(args("a $H\\\n$(V) $P"), kUnreadable);
  expect_left("a $X\\\n$H");  // $Xray-head would be another variable
}

TEST(ShellNames, ThatTheScriptMaySetAreLeft) {
  for (const char* set : {"H=1",           "H=1 b",           "H+=1",
                          "export H",      "export H=1",      "export \"H=1\"",
                          "export 'H'",    "read H",          "read -r H",
                          "read \"H\"",    "unset H",         "for H in a; do b; done",
                          "printf -v H x", "printf -vH x",    "printf \"-vH\" x",
                          "read -raH",     "a ${H:=x}",       "a ${H=x}",
                          "a \"${H:=x}\"", "a ${X:-${H:=x}}", "H[0]=1",
                          "H()(a)",        "sh -c 'H=1; b'",  "local H",
                          "X=\"H\"",       "mapfile H <f",    "getopts a H",
                          "a ${H[0]=x}",   "A[H=1]=2",        "X='(H=1)'",
                          "X='H+=1'"}) {
    const std::string text = std::string(set) + "\na ";
    EXPECT_EQ(shell(text + "$H $P"), text + "$H @@P") << set;
    EXPECT_EQ(shell("a $H $P\n" + std::string(set)), "a $H @@P\n" + std::string(set)) << set;
  }
  EXPECT_EQ(hook("a $((H=1)) $H $P"), "a $((H=1)) $H @@P");
  EXPECT_EQ(hook("a $((H++)) $H $P"), "a $((H++)) $H @@P");
}

TEST(ShellNames, MentionsThatSetNothing) {
  EXPECT_EQ(shell("python -c 'import os; os.environ[\"H\"]'; a $H"),
            "python -c 'import os; os.environ[\"H\"]'; a @@H");
  EXPECT_EQ(shell("python -c \"print(os.environ['H'], '$H')\""),
            "python -c \"print(os.environ['H'], '@H')\"");
  EXPECT_EQ(shell("# H=1\na $H"), "# H=1\na @@H");
  EXPECT_EQ(shell("a $H ${H} ${H:-x} ${#H} HH xH H_"), "a @@H @@H ${H:-x} ${#H} HH xH H_");
}

TEST(ShellSetters, ScriptsThatMaySetAnything) {
  for (const char* text :
       {"eval b; a $H", "\"eval\" b; a $H", "\\eval b; a $H", "e'v'al b; a $H",
        "command eval b; a $H", "A=1 eval b; a $H", "$'eval' b; a $H", "source f; a $H",
        ". f; a $H", "'.' f; a $H", "if . f; then a $H; fi", "! . f; a $H", "{ . f; }; a $H",
        "(. f); a $H", "b && . f; a $H", "b\n. f; a $H", "A=1 . f; a $H", ">g . f; a $H",
        "2>g . f; a $H", "command . f; a $H", "command -p . f; a $H", "builtin . f; a $H",
        "case x in y) . f; esac; a $H", "for i do . f; done; a $H", "alias b=c; a $H",
        "let X=1; a $H", "export $X; a $H", "export \"$X=1\"; a $H", "export A=1 $X; a $H",
        "declare \"$X=$Y\"; a $H", "read $X; a $H", "unset \"$X\"; a $H", "readonly `b`; a $H",
        "typeset $X=1; a $H", "local $X; a $H", "declare -n X=Y; a $H", "mapfile $X; a $H",
        "printf -v \"$X\" b; a $H", "printf -v$X b; a $H", "for $X in a; do a $H; done",
        "select $X in a; do a $H; done", "getopts a $X; a $H", "export A$H=1; a $P",
        "trap 'eval b' TERM; a $H", "trap 'X=1' TERM; a $H", "trap \"$X\" TERM; a $H",
        "trap '. f' TERM; a $H", "trap 'read H' TERM; a $H", "export \"$X\"H; a $H",
        "let() { b; }; a $H",
        // What runs is only known to the shell.
        "$X b; a $H", "\"$X\" b; a $H", "\"$@\"; a $H", "`b` c; a $H", "if $X; then a $H; fi",
        "A=1 $X b; a $H", "e$X b; a $H", "$H b; a $P"})
    EXPECT_EQ(shell(text), kSets) << text;
  EXPECT_EQ(hook("export $(cat .env); a $H"), kSets);
  EXPECT_EQ(hook("$(b) c; a $H"), kSets);
  EXPECT_EQ(shell("coproc b; a $H"), kUnreadable);
}

TEST(ShellSetters, LookAlikes) {
  for (const std::string text : {"cd .; a ",
                                 "echo source.sh; a ",
                                 "echo waiting for $X; a ",
                                 "echo read $X export $Y; a ",
                                 "export A=$X B=\"$Y\"; a ",
                                 "A=$X; B=`b`; a ",
                                 "read -r line <f; a ",
                                 "wait; a ",
                                 "printf '%s' \"$X\"; a ",
                                 "exec $X; a ",
                                 "$X/bin/b; a ",
                                 "\"${X}/b\" c; a ",
                                 "./$X; a ",
                                 "trap 'ray stop' EXIT; a ",
                                 "trap \"kill 1; exit 0\" TERM INT; a ",
                                 "trap - TERM; a ",
                                 "for i in $X; do b; done; a ",
                                 "case $X in a) b;; esac; a ",
                                 "find . -name b; a ",
                                 "unset X; a ",
                                 "set -a; a ",
                                 "[[ $X && $Y ]] || b; a "})
    EXPECT_EQ(shell(text + "$H"), text + "@@H") << text;
}

TEST(ShellSetters, FieldSeparator) {
  for (const char* text : {"IFS=:; a $H", "while IFS= read -r x; do a $H; done", "export IFS; a $H",
                           "a $H; export 'IFS=x'", "a ${IFS:=x} $H", "unset IFS; a $H"})
    EXPECT_EQ(shell(text), kFieldSeparator) << text;
  EXPECT_EQ(shell("a \"$IFS\" $H"), "a \"$IFS\" @@H");
}

TEST(ShellSpots, WherePlainTextMeansMore) {
  expect_left("a $H=1");
  expect_left("a $H+=1");
  expect_left("a x$H=1");
  expect_left("a $H$P=1");
  expect_left("a $H\\\n=1");
  expect_left("a $H[0]=1");
  expect_left("a A[$H]=1");
  EXPECT_EQ(shell("a --x=$H \"$H\"=1 $H:x=1"), "a --x=@H \"@H\"=1 @H:x=1");
  expect_left("a {1..$H} x{a,$H} $H{a,b} \"$H\"{a,b}");
  expect_left("a ~$H ~x$H x:~$H");
  expect_left("echo $P>f");
  expect_left("echo 1$P>f");
  expect_left("echo $P$P<f");
  expect_left("echo $P\\\n>f");
  EXPECT_EQ(shell("echo $P >f; echo x$P>f; echo \"$P\">f"),
            "echo @@P >f; echo x@P>f; echo \"@P\">f");
  expect_left("a >&$P <&$H 2>& $P");
  EXPECT_EQ(shell("a 2>&1 >$H"), "a 2>&1 >@@H");
  expect_left("a $H() { b; }");
  expect_left("a $H ( )");
  expect_left("a $H \\\n()");
  expect_left("function $H { a; }");
  expect_left("for i $H; do b; done");
  expect_left("case x $H a) b;; esac");
  expect_left("[[ -$H x ]]");
  EXPECT_EQ(shell("[[ $H = \"$H\" ]]; a $H"), "[[ $H = \"@H\" ]]; a @@H");
  expect_left("a $X$H $1$H $?$H \"$X$H\"");
}

TEST(ShellSpots, AfterAnOpenEndedName) {
  EXPECT_EQ(shell("a ${X}$H $X-$H $X\"$H\" $H$X"), "a ${X}@H $X-@H $X\"@H\" @H$X");
  // The caller may leave the first of two.
  EXPECT_EQ(shell("a $H$P ${H}$P"), "a $H$P @H@P");
  EXPECT_EQ(args("a $X$(V)$H"), "a $X$(V)$H");
  EXPECT_EQ(args("a $X$(V)y$H"), "a $X$(V)y$H");
  EXPECT_EQ(shell("cat <<E\n$X$H\nE\n"), "cat <<E\n$X$H\nE\n");
}

TEST(ShellKubelet, TheShellSeesWhatKubeletMade) {
  EXPECT_EQ(args("a $$H $${H} \"$$H\" '$$H'"), "a @@H @@H \"@H\" '$$H'");
  EXPECT_EQ(args("a \\$$H $P"), "a \\$$H @@P");
  EXPECT_EQ(args("a $$$$H $P"), "a $$$$H @@P");  // the pid, then the letter H
  EXPECT_EQ(args("a $$$H $P"), "a $$$H @@P");
  EXPECT_EQ(args("a $$(b $H) $P"), "a $$(b $H) @@P");
  EXPECT_EQ(args("a $$((1+1)) $P"), "a $$((1+1)) @@P");
  EXPECT_EQ(args("a $(H) $P"), "a $(H) @@P");
  EXPECT_EQ(args("a $(b $$) $P"), "a $(b $$) @@P");  // a name that is not found stays as it is
  EXPECT_EQ(hook("a $(V) $P"), "a $(V) @@P");
}

TEST(ShellKubelet, HarmlessText) {
  EXPECT_EQ(args("a $(V) '$(V)' \"$(V)\" $(V):$H"), "a $(V) '$(V)' \"$(V)\" $(V):@H");
  EXPECT_EQ(args("a x=$(V) $H"), "a x=$(V) @@H");
  // It may be nothing, or go on a name, a number, an operator.
  EXPECT_EQ(args("a $H$(V) ${H}$(V)"), "a $H$(V) @H$(V)");
  EXPECT_EQ(args("a $(V)$P>f"), kUnknown);
  EXPECT_EQ(args("a $(V)#$H"), kUnknown);
  EXPECT_EQ(args("a \\$(V)$H"), kUnknown);
  EXPECT_EQ(args("a \"\\$(V)\" $H"), kUnknown);
  EXPECT_EQ(args("a $$$(V) $H"), kUnknown);
  EXPECT_EQ(args("a ${$(V)} $H"), kUnknown);
  EXPECT_EQ(args("a ${H$(V)=x} $H"), kUnknown);
  EXPECT_EQ(args("cat <<E\n$(V)\nE\na $H"), kUnknown);
  EXPECT_EQ(args("cat <<E\nx $(V)\nE\na $H"), "cat <<E\nx $(V)\nE\na @@H");
  EXPECT_EQ(args("cat <<$(V)\n$H\nE\n"), kUnreadable);
  // Perhaps the name of what is set, or of the builtin that sets it.
  EXPECT_EQ(args("$(V)=1; a $H"), kSets);
  EXPECT_EQ(args("H$(V)=1; a $P"), kSets);
  EXPECT_EQ(args("export $(V); a $H"), kSets);
  EXPECT_EQ(args("$(V) x; a $H"), kSets);
  EXPECT_EQ(args("$(V)/bin/b x; a $H"), "$(V)/bin/b x; a @@H");
}

TEST(ShellKubelet, UnknownText) {
  EXPECT_EQ(args("a $(U) $H"), kUnknown);
  EXPECT_EQ(args("a '$(U)' $H"), kUnknown);
  EXPECT_EQ(args("a $H # $(U)"), kUnknown);
  EXPECT_EQ(args("a $$(U) $H"), "a $$(U) @@H");
  EXPECT_EQ(hook("a $(U) $H"), "a $(U) @@H");
}

TEST(ShellScanTest, NothingToFind) {
  EXPECT_EQ(shell(""), "");
  EXPECT_EQ(shell("eval x"), "eval x");
  EXPECT_EQ(shell(std::string_view("a $H \0", 6)), kUnreadable);
  EXPECT_TRUE(scan_shell("a $H", {}, {false, {}}).sure.empty());
}

TEST(ShellScanTest, ManyNames) {
  std::vector<std::string> strings;
  strings.reserve(1000);
  for (int i = 0; i < 1000; ++i) strings.push_back("N" + std::to_string(i));
  const std::vector<std::string_view> names(strings.begin(), strings.end());
  const ShellScan scan = scan_shell("N7=1; a $N7 $N8 $N1000 $N999", names, {false, {}});
  EXPECT_EQ(marked("N7=1; a $N7 $N8 $N1000 $N999", scan), "N7=1; a $N7 @@N8 $N1000 @@N999");
}

TEST(ShellScanTest, HostileTextsEnd) {
  constexpr std::size_t kSize = 8 << 20;
  for (const std::string_view start :
       {"a $H ", "a \"$H", "a '$H", "a $(", "a ${X:-", "cat <<E\n$H"}) {
    for (const std::string_view piece :
         {"$",     "\"", "'",     "`",   "\\",   "(",    ")",   "{",     "}",    "[",   "<",
          "<<A ",  ">",  "#",     "\n",  "$(",   "$((",  "${",  "${X:-", "\"$(", "~",   "=",
          "a=",    "a;", "\\\n",  "$$",  "$(V)", "$(X)", "$H ", "H ",    "\"H ", "-a ", "<(",
          "<<A\n", "&",  "case ", "'' ", "$'a'", "\xff", "if ", "[[ "}) {
      std::string text(start);
      while (text.size() < kSize / 64) text += piece;
      args(text);
    }
  }
  for (const std::string_view piece :
       {"$", "\"", "'",    "`",     "\\", "(",  ")",   "{",  "[",  "<",  "#",
        "=", "\n", "<<A ", "<<A\n", "$(", "${", "$((", "$$", "a;", "$H "}) {
    std::string text = "a $H ";
    while (text.size() < kSize) text += piece;
    args(text);
  }
}

TEST(ShellScanTest, DeepNestingIsADoubt) {
  for (const auto& [open, close] :
       {std::pair{"$(", ")"}, {"${X:-", "}"}, {"\"$(", ")\""}, {"$((", "))"}, {"<(", ")"}}) {
    std::string text = "a $H ";
    for (int i = 0; i < 100'000; ++i) text += open;
    for (int i = 0; i < 100'000; ++i) text += close;
    EXPECT_EQ(hook(text), kUnreadable) << open;
  }
  std::string text = "a $H ";
  for (int i = 0; i < 100'000; ++i) text += "{ (";
  EXPECT_EQ(hook(text + " b"), "a @@H " + text.substr(5) + " b");
}

std::size_t script(std::vector<std::string_view> argv) {
  const std::size_t index = shell_script_index(argv);
  return index == argv.size() ? 99 : index;
}

TEST(ShellScriptIndex, ShellsWithTheirOptions) {
  EXPECT_EQ(script({"sh", "-c", "x"}), 2U);
  EXPECT_EQ(script({"/bin/bash", "-c", "--", "x"}), 3U);
  EXPECT_EQ(script({"/bin/sh", "-lc", "x", "arg0", "arg1"}), 2U);
  EXPECT_EQ(script({"bash", "-euxc", "x"}), 2U);
  EXPECT_EQ(script({"bash", "-x", "-c", "x"}), 3U);
  EXPECT_EQ(script({"bash", "-c", "-e", "x"}), 3U);
  EXPECT_EQ(script({"bash", "-euo", "pipefail", "-c", "x"}), 4U);
  EXPECT_EQ(script({"bash", "-ceuo", "pipefail", "x"}), 3U);
  EXPECT_EQ(script({"bash", "-o", "pipefail", "+e", "-c", "x"}), 5U);
  EXPECT_EQ(script({"bash", "--login", "--norc", "-c", "x"}), 4U);
  EXPECT_EQ(script({"bash", "-O", "globstar", "-c", "x"}), 4U);
  EXPECT_EQ(script({"bash", "-c", "-", "x"}), 3U);
  EXPECT_EQ(script({"dash", "-c", "x"}), 2U);
  EXPECT_EQ(script({"ash", "-c", "x"}), 2U);
  EXPECT_EQ(script({"busybox", "sh", "-c", "x"}), 3U);
}

TEST(ShellScriptIndex, Wrappers) {
  EXPECT_EQ(script({"tini", "--", "bash", "-euo", "pipefail", "-c", "x"}), 6U);
  EXPECT_EQ(script({"/usr/bin/tini", "-g", "-s", "-p", "SIGTERM", "sh", "-c", "x"}), 7U);
  EXPECT_EQ(script({"dumb-init", "--single-child", "-r", "15:3", "--", "sh", "-c", "x"}), 7U);
  EXPECT_EQ(script({"/usr/bin/env", "bash", "-c", "x"}), 3U);
  EXPECT_EQ(script({"nohup", "setsid", "nice", "sh", "-c", "x"}), 5U);
  EXPECT_EQ(script({"tini", "--", "env", "busybox", "sh", "-c", "x"}), 6U);
  EXPECT_EQ(script({"nice", "-n", "5", "setsid", "-w", "sh", "-c", "x"}), 7U);
  EXPECT_EQ(script({"stdbuf", "-oL", "-e", "0", "bash", "-c", "x"}), 6U);
  EXPECT_EQ(script({"timeout", "5", "sh", "-c", "x"}), 4U);
  EXPECT_EQ(script({"timeout", "-k", "5", "-sINT", "--foreground", "1h", "sh", "-c", "x"}), 8U);
  EXPECT_EQ(script({"tini", "--", "gosu", "ray:users", "bash", "-lc", "x"}), 6U);
  EXPECT_EQ(script({"su-exec", "ray", "sh", "-c", "x"}), 4U);
}

TEST(ShellScriptIndex, NoneIsCertain) {
  const std::vector<std::vector<std::string_view>> none = {
      {},
      {"sh"},
      {"sh", "-c"},
      {"sh", "-c", "--"},
      {"sh", "script.sh", "-c", "x"},
      {"sh", "--", "-c", "x"},
      {"ray", "start", "-c", "x"},
      {"python", "-c", "x"},
      {"zsh", "-c", "x"},
      {"ksh", "-c", "x"},
      {"fish", "-c", "x"},
      {"sh", "-nc", "x"},
      {"sh", "-sc", "x"},
      {"bash", "-ic", "x"},
      {"sh", "+c", "x"},
      {"sh", "-c", "-o", "noexec", "x"},
      {"sh", "-o", "unheard-of", "-c", "x"},
      {"sh", "-c", "-o"},
      {"bash", "--rcfile", "f", "-c", "x"},
      {"bash", "--help", "-c", "x"},
      {"bash", "-c", "--login", "x"},
      {"env", "-i", "sh", "-c", "x"},
      {"env", "A=1", "sh", "-c", "x"},
      {"nice", "-5", "sh", "-c", "x"},
      {"nice", "--adjustment=5", "sh", "-c", "x"},
      {"sudo", "sh", "-c", "x"},
      {"gosu", "ray"},
      {"gosu", "-x", "ray", "sh", "-c", "x"},
      {"timeout", "-k", "5"},
      {"timeout", "$(TIME)", "sh", "-c", "x"},
      {"timeout", "--unheard-of", "5", "sh", "-c", "x"},
      {"tini", "-x", "sh", "-c", "x"},
      {"tini"},
      {"tini", "--"},
      {"env"},
      {"busybox"},
      {"busybox", "cat", "-c", "x"},
      {"", "-c", "x"},
  };
  for (const std::vector<std::string_view>& argv : none)
    EXPECT_EQ(shell_script_index(argv), argv.size()) << testing::PrintToString(argv);
}

TEST(ShellReserved, Words) {
  for (const char* word : {"if", "do", "in", "esac", "time", "{", "export", "[["})
    EXPECT_TRUE(is_shell_reserved(word)) << word;
  for (const char* word : {"", "ray-head", "iff", "IF", "echo"})
    EXPECT_FALSE(is_shell_reserved(word)) << word;
}

}  // namespace
}  // namespace rayhook
