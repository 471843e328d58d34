#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random shell scripts, run by real dash and bash before and after their references were rewritten:
what they print, how they end and what files they leave must be the same.

  --rayhook PATH   rewrites with `PATH review`, as a Pod's ["sh", "-c", SCRIPT]
  --driver PATH    rewrites with scan_driver: many more cases in the same time, and nastier values
"""

import argparse
import base64
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

SHELLS = ("dash", "bash")
SECONDS = 5
# Nasty on purpose: words of the shell, a here-document's end, single letters that join to words.
HOSTS = ["ray-head", "service-ray-cluster", "ray-head.ns.svc", "a", "f", "o", "n", "p", "eof", "do",
         "in", "if", "done", "then", "export", "read", "echo", "rayhead", "x", "e1", "esac", "fn",
         "set", "exit", "local", "unset", "root"]
PORTS = ["6380", "6379", "10001", "1", "2", "80"]


def kubelet(text, env):
    """What kubelet makes of a command's text; our own reading of expand.go, for the test only."""
    out, at = [], 0
    while at < len(text):
        c = text[at]
        if c != "$" or at + 1 == len(text):
            out.append(c)
            at += 1
        elif text[at + 1] == "$":
            out.append("$")
            at += 2
        elif text[at + 1] == "(" and (close := text.find(")", at + 2)) >= 0:
            out.append(env.get(text[at + 2:close], text[at:close + 1]))
            at = close + 1
        else:
            out.append(text[at:at + 2])
            at += 2
    return "".join(out)


class Grammar:
    """Scripts rich in what a shell reads unexpectedly. Nothing but builtins, cat, seq and shells,
    no recursion and no loop without an end."""

    def __init__(self, rng, values, doubles_dollars):
        self.rng, self.values, self.doubles_dollars = rng, values, doubles_dollars
        self.names = list(values)
        self.depth = 0
        self.calm = False

    def pick(self, *options):
        option = self.rng.choice(options)
        return option() if callable(option) else option

    def wild(self, *options):
        """What makes the whole script doubtful: only in some scripts, or little would be rewritten."""
        return () if self.calm else options

    def often(self, chance):
        return self.rng.random() < chance

    def name(self):
        return self.rng.choice(self.names)

    def many(self, make, low, high, joint=""):
        return joint.join(make() for _ in range(self.rng.randint(low, high)))

    def plain_reference(self):
        return self.pick(lambda: "$" + self.name(), lambda: "${" + self.name() + "}")

    def reference(self):
        if self.often(0.55):
            return self.plain_reference()
        n, r = self.name(), self.rng
        return r.choice([
            f"${n}AME", f"${n}_2", "$UNSET", "${UNSET}", "$1", "$#", "$?", "$$", "$OTHER", "$9", "$",
            f"$$${n}", f"\\${n}", f"'${n}'", f'"${n}"', f'"${{{n}}}"', f"$({n})", f"$({n})",
            f"${{{n}:-d}}", f"${{#{n}}}", f"${{{n}%?}}", f"${{{n}:=d}}", f"${{{n}=d}}", f"${{{n}+y}}",
            f'"${{{n}:-"d e"}}"', f"${{UNSET:-${n}}}", f"\"${{UNSET:-'${n}'}}\"", f"${{{n}#r}}",
            f"`echo ${n}`", f"$(echo ${n})", f"$(echo '${n})' \")\")", f"\"$(echo \"${n}\")\"",
            f"$((${n}+1))", f"$(( 1 + (2) ))", f"$'${n}'", f'$"${n}"', *self.wild(f"$[1+1]", f"$(({n}=7))"),
            f"`echo \\`echo ${n}\\``", f"\"`echo \\\"${n}\\\"`\"", f"${{!{n}}}", *self.wild(f"${n}\\\nAME", f"$\\\n{n}"),
            f"${{{n}\\\n}}", f"${n}\\\n", f"\\\\${n}", f"\\\\\\${n}", f"$OTHER${n}",
            f"$OTHER\\\n${n}", f"$1${n}", f"$?${n}", f"${n}$({n})", f"$({n})${n}", f"'\\'${n}", f"$''${n}",
            f"$$({n})", f"$${n}", f"$${{{n}}}", f"${n}[0]", f"${{{n}[0]}}", f"${n}é", f"é${n}",
            f"${{{n}/a/b}}", f"${{{n}^^}}", f"${{OTHER}}${n}",
            f"${{{n}#[}}]}}", f"${{UNSET:-{{a}}}}", f'${{UNSET:-"}}"}}', f"${{UNSET:-\\}}}}", f"\"${{UNSET:-\\}}}}\"",
            f'"`echo "${n} x"`"', "`echo '\\`'`", f"$(((1+(2))*3))", f"$(${n})", f"$(echo; (echo ')'; echo \\))",
            f"`echo \\${n}`", f"$(echo `echo ')'`)", f"${{UNSET:-`echo }}`}}", f"${{UNSET:-$(echo }})}}",
            *self.wild(f"$((echo 1) | cat)", f"$( (echo ${n}) )", f"${{UNSET:-<(echo }})}}"),
            *self.wild(f"$(# c )\n)", f"$(case a in a) echo ${n};; esac)", f"$(cat <<E\n${n}\nE\n)", n), f"<(echo ${n})", f"\"$OTHER${n}\"",
        ])

    def literal(self):
        return self.pick("a", "b", "f", "--address=", ":", "-", "/", ".", "=", "+=", "~", "{", "}", "[", "]",
                         "#", "1", "2", "in", "o", "do", ",", "..", "{a,", "{1..", "http://", "e", "é", "\r",
                         "%s", "*", "?", "!", "@", "^", "ev", "al", "x=", "E", "EOF", "\\ ", "\\a", "\\\n", "'", '"')

    def quoted(self):
        return self.pick(
            lambda: '"' + self.many(self.quoted_part, 0, 3) + '"',
            lambda: "'" + self.many(lambda: self.pick("a", " ", '"', "$", "\\", "#", self.plain_reference,
                                                      self.name, "=", "\n"), 0, 3) + "'")

    def quoted_part(self):
        return self.pick("a", " ", "'", "#", "\\\"", "\\$", "\\\\", "\\`", "\\a", "/", ";", "\n", "\\\n", "=", "-v",
                         self.plain_reference, self.plain_reference, self.plain_reference, self.reference,
                         self.name)

    def part(self):
        return self.pick(self.reference, self.reference, self.reference, self.literal, self.literal, self.quoted)

    def word(self):
        if self.often(0.35):
            return self.pick(lambda: self.plain_reference(), lambda: '"' + self.plain_reference() + '"',
                             lambda: f"--address={self.plain_reference()}:{self.plain_reference()}",
                             lambda: f"http://{self.plain_reference()}:80/x", lambda: "w" + str(self.rng.randint(0, 9)))
        return self.many(self.part, 1, 3)

    def blank(self):
        return self.pick(" ", " ", " ", "  ", "\t", " \\\n ", "\\\n ", " \\\n")

    def words(self, low, high):
        return "".join(self.blank() + self.word() for _ in range(self.rng.randint(low, high)))

    def delimiter(self):
        word = self.pick("EOF", "E", "eof", "a", "rayhead", "f", "E-1", "$X", "E'F'")
        return word, self.pick(word, word, word, f"'{word}'", f'"{word}"', f"\\{word}", f" {word}", f"\t'{word}'")

    def here_document(self):
        word, spelled = self.delimiter()
        strips = self.often(0.3)
        line = lambda: self.many(lambda: self.pick(self.reference, self.plain_reference, self.plain_reference,
                                                   self.literal, " ", "\t", word[:1], word, "'", '"'), 0, 4)
        body = self.many(lambda: ("\t" if strips or self.often(0.1) else "") + line() + "\n", 0, 3)
        end = "" if self.often(0.02) else ("\t" if strips and self.often(0.5) else "") + word + self.pick("\n", "\n", "\n", " \n", "")
        return "<<" + ("-" if strips else "") + spelled, body + end

    def redirection(self):
        return self.pick(lambda: f"{self.blank()}>{self.pick('', ' ')}f{self.rng.randint(0, 2)}",
                         lambda: self.word() + ">f1", lambda: f" >{self.word()}", lambda: " 2>&1", lambda: " >&2",
                         lambda: f" >&{self.plain_reference()}", lambda: f"{self.plain_reference()}>f2",
                         lambda: f" <f{self.rng.randint(0, 2)}", lambda: f" >>f0", lambda: " >|f1",
                         lambda: f" <<<{self.word()}", lambda: f" 2>f1 {self.word()}", lambda: " &>f1", lambda: " {fd}>f1")

    def simple(self):
        """One command and the bodies of its here-documents."""
        n = self.name()
        starts = self.pick("", "", "", "", lambda: f"A={self.word()} ", *self.wild(lambda: f"{n}={self.word()} "),
                           lambda: f"B{self.plain_reference()}={self.word()} ", "! ", "command ", ">f0 ", "builtin ",
                           lambda: f"A[{self.plain_reference()}]=1 ", "exec 3>&1; ", "\\\n", "time -p ", "command -p ")
        head = self.pick(*["echo"] * 8, *["printf %s\\\\n"] * 3, "cat", ":", "test", "[", "fn", "set --", "\\echo",
                         "'echo'", "e'ch'o", "ech\\\no", lambda: "cd . && echo", "echo .",
                         lambda: f"trap 'echo bye' EXIT; echo", lambda: f"A={self.word()};echo $A",
                         lambda: f"sh -c {self.quoted()}; echo", lambda: f"set -- {self.words(1, 2)}; echo",
                         "set -x; echo", "set -u; echo", "set -a; echo", "wait; echo", "printf", "exec echo", "read A <f0; echo",
                         "export A=$A B; echo", lambda: f"export A={self.word()}; echo",
                         *self.wild(
                             lambda: f"{self.pick('export', 'readonly', 'unset', 'read', 'local', 'declare', 'typeset')}"
                                     f" {self.pick(n, n + '=' + self.word(), chr(34) + n + '=' + self.word() + chr(34), self.word)};echo",
                             f"printf -v {n} %s; echo", f"printf -v{n} 5; echo", f'printf -v "{n}" 5; echo',
                             lambda: f"eval {self.quoted()};echo", lambda: f"trap {self.quoted()} EXIT; echo",
                             lambda: f"{n}={self.word()};echo", lambda: f"IFS={self.pick(':', '-', '.', '')};echo",
                             self.plain_reference, self.word, f"let {n}=5;echo", f"(({n}=5));echo",
                             lambda: f"A=({self.words(1, 2)});echo", lambda: f"alias a={self.word()};echo", ". ./f0; echo",
                             f"getopts a {n}; echo", "coproc cat;echo", f"readarray {n} <f0;echo", "$E", "$'echo'"))
        command = starts + head + self.words(0, 4)
        bodies = ""
        for _ in range(self.rng.choice([0, 0, 0, 0, 0, 1, 1, 2])):
            if self.often(0.5):
                redirect, body = self.here_document()
                command += self.pick(" ", "", " ") + redirect
                bodies += body
            else:
                command += self.redirection()
        if self.often(0.05):
            command += " # " + self.words(0, 2).replace("\n", " ") + "'"
        if command.startswith("fn") or self.often(0.1) and not bodies:
            command += " </dev/null"
        return command, bodies

    def pitfall(self):
        """Where plain text, or a name that was set, would be seen: what chance alone meets too seldom."""
        n, r, rng = self.name(), self.plain_reference(), self.rng
        value = self.values[n]
        cut = rng.randint(1, len(n) - 1)
        begin, rest = n[:cut], n[cut:]
        end = value[rng.randint(0, len(value)):]
        document = f"{value[:len(value) - len(end)]}${{{n}}}" if rng.random() < 0.5 else f"${n}"
        show = f"echo {r} ${n}"
        options = [
            f"echo {{1..{r}}} x{{a,{r}}} {r}{{1,2}} \"{r}\"{{1,2}}", f"echo ~{r} ~{r}/x", f"echo w {r}>f1", f"echo w 1{r}>f1",
            f"echo w {r}\\\n>f2", f"cat w {r}<f0", f"echo w {r}>&2", f"echo w >&{r}", f"printf '%s ' w {r}{r}>f1",
            f"cat <<{value}\n{r}\n${n}\n{value}", f"cat <<-{value}\n\t{document}\nx\n{value}", f"cat <<'{value}'\n{r}\n{value}",
            f"# it's {r}\necho {r} '{r}' # don't", f"# \"\n{show} \"'{r}'\" # `", f"echo a#'{r}' {r} #'\necho '{r}'", f"# <<E $(\n{show}",
            f"echo 'a\\' {r} '{r}'", f"echo \\'{r} \\\"{r} \"\\\"{r}\\\"\"", f"echo \"`echo \\\"'{r}'\\\"`\" '{r}'",
            f"echo $'{r}' '{r}'", f"cat <<'E'\n{r}\nE", f"cat <<-\\E\n\t{r}\n\tE",
            f"echo $'\\'' '{r}' {r} #'", f"echo \"${{UNSET:-'{r}'}}\" '{r}'", f"[[ -{r} w ]]; echo $?", f"[[ w = {r} ]] || {show}",
            f"echo $(echo ')' '{r}') '{r}' {r}", f"echo $OTHER{r} $1{r} $?{r}", f"case w in w) echo '{r}';; esac; {show}",
            f"for i in a; do {show} '{r}'; done", f"env_{r}=5; echo w", f"A={r}; echo \"$A\" '$A'", f"A=x{r}=y; echo $A"]
        options += self.wild(
            f"IFS={rng.choice(value)}; {show}", f"export 'IFS={rng.choice(value)}'; {show}",
            f"k={begin}; export \"${{k}}{rest}=changed\"; {show}", f"k={begin}; read \"${{k}}{rest}\" <f0; {show}",
            f"k={begin}; unset ${{k}}{rest}; {show}", f"k={begin}; printf -v ${{k}}{rest} 5; {show}",
            f"k={begin}; declare -n y=${{k}}{rest}; y=5; {show}", f"k={begin}; for i in 1; do readonly \"$k\"{rest}=5; done; {show}",
            f"E=export; $E {begin}''{rest}=5; {show}", f"echo {n}=5 >f1; . ./f1; {show}", f"eval {begin}'{rest}=5'; {show}",
            f"alias q={begin}''{rest}=5\nq\n{show}", f"trap '{n}=5' EXIT; {show}", f"echo $(({n}=5)); {show}", f"export '{n}=5'; {show}",
            f"export \"{n}\"=5; {show}", f"read {n} <f0; {show}", f"{begin}\\\n{rest}=5; {show}", f"unset {n}; {show}",
            f": ${{UNSET:=x}} ${{{n}:=d}}; {show}", f"command export {n}=5; {show}", f"{n}=5 echo {r}; {show}", f"e''val '{n}=5'; {show}",
            f"fn() {{ {n}=5; }}; fn; {show}", f"cat <<a <<b\n{r}\na\n'{r}'\nb", f"while read {n}; do {show}; done <f0",
            f"echo $((echo 1) | cat) '{r}' ))", f"echo $(case a in a) echo {r};; esac) '{r}'", f"echo ${n}\\\nAME", f"echo $[1 + 1] {r}")
        return rng.choice(options), ""

    def list_of(self, high=2):
        out = ""
        for _ in range(self.rng.randint(1, high)):
            if self.often(0.2):
                command, _ = self.pitfall()
                out += command + "\n"
                continue
            command, bodies = self.simple() if self.depth > 2 or self.often(0.7) else self.compound()
            joint = "\n" if bodies else self.pick("\n", "\n", "; ", ";", " && ", " || ", " &&\n", "\r\n", " | cat\n", " ;\\\n", "& wait\n")
            out += command + joint + bodies
            if joint.strip() in ("&&", "||"):
                out += ":\n"
        return out

    def compound(self):
        self.depth += 1
        n, word, body = self.name(), self.word, self.list_of
        out = self.pick(
            lambda: f"if [ -n {word()} ]; then {body()}\nelse {body()}\nfi",
            lambda: f"if [[ {word()} {self.pick('=', '==', '=~', '<', '-eq')} {word()} ]]; then {body()}\nfi",
            lambda: f"for i in{self.words(0, 3)}; do {body()}\ndone",
            *self.wild(lambda: f"for {n} in{self.words(0, 3)}\ndo {body()}\ndone"), lambda: f"for i do {body()}\ndone",
            lambda: f"case {word()} in\n{self.pick('', '(')}{word()}) {body()}\n;;\n*) {body()}\n;; esac",
            lambda: f"case {word()} in {word()}|{word()}) {body()};; esac",
            lambda: f"fn() {{ {body()}\n}}\nfn{self.words(0, 2)}", lambda: f"function fn {{ {body()}\n}}",
            lambda: f"fn() (\n{body()}\n)", lambda: f"{word()} () {{ {body()}\n}}", lambda: f"{{ {body()}\n}}",
            lambda: f"( {body()}\n)", lambda: f"while read -r {self.pick('l', n)}; do {body()}\ndone <f0",
            lambda: f"{{ {body()}\n}} | cat", lambda: f"cat <<O1 <<O2\n{word()}\nO1\n{word()}\nO2\n",
            lambda: f"( {body()}\n) >f2")
        self.depth -= 1
        return out, ""

    def script(self):
        self.depth = 0
        self.calm = self.often(0.7)
        text = ("fn() { echo fn \"$@\"; }\n" if self.often(0.5) else "") + self.list_of(4)
        if self.often(0.35):
            text = self.damage(text)
        if self.often(0.4):
            text += "\necho end " + " ".join(f'"${n}"' for n in self.names)
        if self.doubles_dollars and self.often(0.3):
            text = self.double_some(text)
        return text.replace("\0", "")

    def double_some(self, text):
        return "".join("$$" if c == "$" and self.often(0.4) else c for c in text)

    def damage(self, text):
        """A few random insertions and deletions: what nobody writes, shells read all the same."""
        for _ in range(self.rng.randint(1, 3)):
            at = self.rng.randint(0, len(text))
            if self.often(0.5):
                text = text[:at] + self.pick("$", "'", '"', "`", "\\", "(", ")", "{", "}", "<", "<<", ">", "#", "=", ";",
                                             "\n", "\\\n", " ", "[", "]", "[[ ", "~", "$(", "${", "$((", "&", "|", "1",
                                             "case ", ". ", "for ", "read ", self.plain_reference, self.name) + text[at:]
            else:
                text = text[:at] + text[at + self.rng.randint(1, 3):]
        return text


class Runner:
    """Runs scripts in an empty directory of their own, with next to no programs."""

    def __init__(self, root):
        self.bin = os.path.join(root, "bin")
        os.mkdir(self.bin)
        self.cwd = os.path.join(root, "cwd")
        for program, target in (("cat", "cat"), ("seq", "seq"), ("sh", "dash"), ("dash", "dash"), ("bash", "bash")):
            os.symlink(os.path.realpath(shutil.which(target)), os.path.join(self.bin, program))

    def run(self, shell, script, env):
        shutil.rmtree(self.cwd, ignore_errors=True)
        os.mkdir(self.cwd)
        with open(os.path.join(self.cwd, "f0"), "w", encoding="utf-8") as file:
            file.write("one two\nthree\n")
        process = subprocess.Popen(
            [os.path.join(self.bin, shell), "-c", script], cwd=self.cwd, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
            env={"PATH": self.bin, "HOME": "/nonexistent", "OTHER": "other", "E": "echo", "LC_ALL": "C.UTF-8", **env})
        timed_out = False
        try:
            out, err = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            timed_out = True
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
        files = {}
        for folder, _, names in os.walk(self.cwd):
            for name in names:
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, self.cwd)] = file.read()
        # A script that prints its own text prints another one afterwards; no rewriting can hide that.
        own_text = re.compile(rb"^BASH_EXECUTION_STRING=.*$", re.MULTILINE)
        hide = lambda data: own_text.sub(b"", data.replace(str(process.pid).encode(), b"PID"))
        # Where a shell stopped reading is told by which error it met, and on which line.
        error = [hide(e) for e in err.splitlines() if b"yntax" in e or b"nterminated" in e or b"unexpected" in e]
        if timed_out:
            return {"timeout": True}
        return {"exit": process.returncode, "stdout": hide(out), "errors": len(error),
                "files": {hide(n.encode()): hide(c) for n, c in files.items()}}


class Driver:
    names = ["X_SERVICE_HOST", "X_SERVICE_PORT", "Y_SERVICE_HOST", "Y_SERVICE_PORT_GCS"]

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def values(self, rng):
        return {name: rng.choice(HOSTS if name.endswith("HOST") else PORTS) for name in self.names}

    def rewrite(self, text, values, expands, rng):
        data = text.encode()
        mask = rng.choice([2**64 - 1, 2**64 - 1, rng.getrandbits(64)])
        pairs = " ".join(f"{n}={v}" for n, v in values.items())
        self.process.stdin.write(f"{len(data)} {int(expands)} {mask} {pairs}\n".encode() + data)
        self.process.stdin.flush()
        _, replaced, length = map(int, self.process.stdout.readline().split())
        return self.process.stdout.read(length).decode(), int(replaced), values


class Rayhook:
    """One Service, `ray-head`: the names and values are those that Rayhook itself gives."""
    names = ["RAY_HEAD_SERVICE_HOST", "RAY_HEAD_SERVICE_PORT_GCS_SERVER", "RAY_HEAD_SERVICE_PORT",
             "RAY_HEAD_SERVICE_PORT_CLIENT"]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "ray-head", "namespace": "ns"},
               "spec": {"selector": {"component": "ray-head"},
                        "ports": [{"name": "gcs-server", "port": 6380, "targetPort": 6380},
                                  {"name": "client", "port": 10001, "targetPort": 10001}]}}

    def __init__(self, program, root):
        self.program = program
        self.services = os.path.join(root, "services.json")
        with open(self.services, "w", encoding="utf-8") as file:
            json.dump(self.service, file)

    def values(self, _):
        return dict(zip(self.names, ("ray-head", "6380", "6380", "10001")))

    def rewrite(self, text, values, expands, _):
        container = {"name": "c", "image": "i"}
        if expands:
            container |= {"command": ["sh", "-c", text]}
        else:
            container |= {"lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", text]}}}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "ns"},
               "spec": {"containers": [container]}}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "ns", "name": "p",
            "resource": {"group": "", "version": "v1", "resource": "pods"}, "operation": "CREATE", "object": pod}}
        done = subprocess.run([self.program, "review", "--services", self.services], check=True,
                              input=json.dumps(review).encode(), stdout=subprocess.PIPE)
        response = json.loads(done.stdout)["response"]
        new, env = text, {}
        for op in json.loads(base64.b64decode(response.get("patch", "W10="))):
            if re.fullmatch(r"/spec/containers/0/(command|lifecycle/postStart/exec/command)/2", op["path"]):
                new = op["value"]
            elif op["path"] == "/spec/containers/0/env":
                env = {entry["name"]: entry["value"] for entry in op["value"]}
            elif op["path"].startswith("/spec/containers/0/env/"):
                env[op["value"]["name"]] = op["value"]["value"]
        if any(n in text for n in values) and any(env.get(n) != v for n, v in values.items()):
            raise SystemExit(f"a variable was not restored: {env} for {text!r}")
        return new, int(new != text), env or values


def varies(runner, shell, original, rewritten):
    """Whether the original alone prints one thing and another (a pid, a race), or both once the same."""
    before = [runner.run(shell, *original) for _ in range(6)]
    after = runner.run(shell, *rewritten)
    if after in before or any(other != before[0] for other in before):
        return True
    # What runs in the background may print at any time.
    in_order = lambda result: sorted(result.get("stdout", b"").splitlines())
    return "&" in original[0] and in_order(before[0]) == in_order(after)


def compare(rewriter, runner, cases, options):
    """The number of faults among so many cases; prints each, and a summary."""
    faults = rewritten = replaced = comparisons = 0
    for case in range(cases):
        rng = random.Random(f"{options.seed}/{case}")
        expands = rng.random() < 0.7
        values = rewriter.values(rng)
        text = Grammar(rng, values, expands).script()
        new, count, restored = rewriter.rewrite(text, values, expands, rng)
        if new == text:
            continue
        rewritten += 1
        replaced += count
        script, new_script = (kubelet(text, values), kubelet(new, restored)) if expands else (text, new)
        for shell in SHELLS:
            before = runner.run(shell, script, values)
            after = runner.run(shell, new_script, restored)
            comparisons += 1
            if before == after or varies(runner, shell, (script, values), (new_script, restored)):
                continue
            faults += 1
            print(f"--- seed {options.seed} case {case} {shell} expands={expands} {values}\n"
                  f"--- before\n{text}\n--- after\n{new}\n--- {before}\n--- {after}", flush=True)
        if faults >= options.keep_going:
            break
    print(f"{type(rewriter).__name__.lower()}: {case + 1} cases, seed {options.seed}: {rewritten} rewritten "
          f"({replaced} references), {comparisons} comparisons, {faults} faults", flush=True)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rayhook")
    parser.add_argument("--driver")
    parser.add_argument("--cases", type=int, default=2000, help="with both, the driver's; a quarter with rayhook")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep-going", type=int, default=1, help="stop after so many faults")
    options = parser.parse_args()
    if not options.rayhook and not options.driver:
        parser.error("--rayhook or --driver is needed")
    for shell in SHELLS:
        if not shutil.which(shell):
            sys.exit(f"{shell} is not installed; install it to compare with it")
    faults = 0
    with tempfile.TemporaryDirectory() as root:
        runner = Runner(root)
        if options.driver:
            faults += compare(Driver(options.driver), runner, options.cases, options)
        if options.rayhook:
            cases = options.cases // 4 if options.driver else options.cases
            faults += compare(Rayhook(options.rayhook, root), runner, cases, options)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
