"""Runs the lines of README.md and docs/ as printed, from a copy of the repository's root as the quickstart leaves it (pages.sh makes it).

```sh blocks: each command in a shell of its own, so that a reader may copy single lines; behind a line that sets a variable, with that line.
```python blocks: a block that imports hbp begins a session, others go on in it. ```c blocks: inside tests/whole/pages/PAGE_N.c.
A comment "needs A, B and C" on a line of sh, or on a block's first line, says what a reader must have: where each is a program or a module
that is here, the line runs; where not, it is listed, and Python is still compiled. What a line that did not run would have written,
later ones are not asked for. Lines that take longest run with HBP_ALL_ROUNDS alone. A plain block behind a ```sh block is what that prints, times of planning aside; ```text is not compared.

usage: pages.py ROOT SOURCE PYTHON_WITH_NUMPY_OR_EMPTY
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED_PAGES = "reference"  # made from the headers
QUOTES = "decisions"  # their C blocks quote headers
COMPILE = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-Wno-unused"]
NEEDS = re.compile(r"(?:#|/\*) needs ([^;:]*?)\s*(?:$|[;:]|\*/)")
SLOW = (
    "build/hbp plan build/lengths.npy --model llama-3.1-8b --machine h100:4 --samples-per-step ",
    "build/hbp compare build/lengths.npy ",
    "build/hbp step build/batch.npy --model llama-3.1-8b --machine h100:8 --compare",
    "build/hbp_executor probe --virtual 2 --seconds 3 ",  # tests/executor/loop.sh runs the loop
    "build/hbp_executor measure --virtual 2 --model $model --max-tokens 512 ",
)
SETS = re.compile(r"^(?:export\s+)?[A-Za-z_]\w*=\S*$")


class Block:
    def __init__(self, line, kind):
        self.line, self.kind, self.lines, self.output, self.behind = line, kind, [], None, []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


def read_blocks(page):
    """The fenced blocks of a page; a plain one behind a sh block, under no other heading, is its output."""
    blocks, block, last = [], None, None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            if block is None:
                block = Block(number, line[3:].strip() or "plain")
            else:
                if block.kind == "plain" and last is not None:
                    last.output = block.lines
                last = block if block.kind == "sh" else None
                blocks.append(block)
                block = None
        elif block is not None:
            block.lines.append(line)
        elif line.startswith("#"):
            last = None
    return blocks


def split_commands(block):
    """A block's commands with their numbers of line: lines ending in a backslash and here-documents are one."""
    command, until = [], None
    for number, line in enumerate(block.lines, block.line + 1):
        command.append(line)
        if until is not None:
            until = None if line == until else until
        else:
            here = re.search(r"<<-?\s*['\"]?(\w+)['\"]?", line)
            until = here.group(1) if here else None
        if until is None and not line.endswith("\\"):
            text = "\n".join(command)
            if text.strip() and not text.lstrip().startswith("#"):
                yield number - len(command) + 1, text
            command = []


def comparable(lines):
    """Lines without the times that a clock measured, and with single blanks."""
    kept, cut = [], False
    for line in lines:
        words = line.split()
        if not words:
            cut = False
            continue
        if words[-2:] == ["planned", "in"]:
            cut = True
        elif cut:
            words = words[:-2]
        kept.append(re.sub(r"[;,]? ?planned in [0-9.]+ \w+", "", " ".join(words)))
    return kept


def first_missing(shown, printed):
    """The first line shown that is not among those printed; a page may leave lines out and sort them. None: all are there."""
    rest = list(printed)
    for line in shown:
        if line not in rest:
            return line
        rest.remove(line)
    return None


def processor_seconds():
    """Of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Run:
    def __init__(self, root, source, python):
        self.root, self.source, self.python = root, source, python
        self.failures, self.apart, self.counts, self.slow, self.said = [], [], {}, [], {}
        self.environment = {
            **os.environ,
            "LC_ALL": "C.UTF-8",  # the bars of tables as the pages have them
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        }
        self.python_tests = "".join(path.read_text() for path in (source / "bindings/python/tests").glob("test_*.py"))
        for name in ("HBP_LIBRARY", "PYTHONPATH", "COLUMNS"):
            self.environment.pop(name, None)

    def count(self, what):
        self.counts[what] = self.counts.get(what, 0) + 1

    def fail(self, where, why):
        self.failures.append(f"{where}: {why}")
        print(f"FAIL: {where}: {why}", flush=True)

    def not_here(self, text):
        """What a text says that it needs and that is not here; None where all is."""
        found = NEEDS.search(text)
        if not found:
            return None
        names = re.split(r", (?:and )?| and ", found.group(1))
        for name in names:
            is_module = self.python and re.fullmatch(r"\w+", name) and self.has_module(name)
            if not is_module and not shutil.which(name):
                return found.group(1)
        return None

    def has_module(self, name):
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({name!r}) is None)"
        return subprocess.run([self.python, "-c", code]).returncode == 0

    def page(self, name):
        """All blocks of a page, in a copy of the root."""
        begin, before, apart = processor_seconds(), dict(self.counts), len(self.apart)
        failures = len(self.failures)
        with tempfile.TemporaryDirectory() as folder:
            self.here = Path(folder) / "root"
            shutil.copytree(self.root, self.here, symlinks=True)
            self.absent = set()
            session, numbers = None, {"c": 0}
            for block in read_blocks(self.source / name):
                where = f"{name}:{block.line}"
                if block.kind == "sh":
                    self.run_sh(name, block)
                elif block.kind == "python":
                    if session is None or re.search(r"^import .*\bhbp\b(?!\.)", block.text, re.M):
                        session = self.end(session) or Session(self)
                    self.run_python(where, block, session)
                elif block.kind == "c":
                    numbers["c"] += 1
                    self.run_c(where, block, name, numbers["c"])
                elif block.kind == "text":
                    self.count("blocks of text, not compared")
                elif block.kind == "yaml":
                    self.count("blocks of YAML, not run")
            self.end(session)
        ran = {key: number - before.get(key, 0) for key, number in self.counts.items() if number != before.get(key, 0)}
        if ran:
            said = ", ".join(f"{number} {key}" for key, number in ran.items())
            wrong = len(self.failures) - failures
            print(f"{name}: {said}{f', {wrong} FAILED' if wrong else ''}; {processor_seconds() - begin:.1f} s of a processor", flush=True)
            for line in self.apart[apart:]:
                print(f"    {line}")

    def end(self, session):
        if session is not None:
            session.close()

    def leave_out(self, where, what, text, why):
        self.apart.append(f"{where}: needs {why}")
        self.count(what)
        self.absent.update(re.findall(r"build/[\w.]+", text))

    def run_sh(self, page, block):
        settings, printed, whole = [], [], True
        for number, command in split_commands(block):
            where = f"{page}:{number}"
            if SETS.match(command):
                settings.append(command)
                continue
            why = self.not_here(command)
            if why is None and "HBP_ALL_ROUNDS" not in os.environ and " ".join(command.split()).startswith(SLOW):
                why = "HBP_ALL_ROUNDS: many steps, or methods, of many samples, or seconds of measuring"
            named = [path for path in re.findall(r"build/[\w.]+", command) if path in self.absent and not (self.here / path).exists()]
            if why is None and named:
                why = f"{named[0]}, of a line that was not run"
            if why is not None:
                whole = False
                self.leave_out(where, "lines of sh not run", command, why)
                continue
            result = self.run_command(where, [*settings, command])
            printed += result.stdout.splitlines()
            self.count("lines of sh run with a variable of their block" if settings else "lines of sh run alone")
            if result.returncode != 0:
                self.fail(where, f"status {result.returncode}: {command}\n{result.stderr[-2000:]}")
            elif result.stderr and command.startswith("build/hbp"):
                self.fail(where, f"on standard error: {result.stderr[-2000:]}")
        if block.output is not None and whole:
            self.count("outputs compared")
            shown = comparable(block.output)
            missing = first_missing(shown, comparable(printed))
            if missing is not None:
                self.fail(f"{page}:{block.line}", f"does not print '{missing}', but\n" + "\n".join(printed[:60]))

    def run_command(self, where, lines):
        """Runs lines in a shell of their own. The comparison of a million samples, which several pages print, runs once."""
        text = "\n".join(lines)
        words = " ".join(text.split("#")[0].split())
        if words in self.said:
            return self.said[words]
        begin = processor_seconds()
        result = subprocess.run(
            ["sh", "-euc", text],
            cwd=self.here, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        self.slow.append((processor_seconds() - begin, where))
        if words.startswith("build/hbp compare build/lengths.npy "):
            self.said[words] = result
        return result

    def run_python(self, where, block, session):
        try:
            compile(block.text, where, "exec")
        except SyntaxError as error:
            self.fail(where, f"does not compile: {error}")
            return
        why = self.not_here(block.lines[0]) if self.python else "numpy"
        if why is not None:
            with_stand_ins = f'"{Path(where.split(":")[0]).name}"' in self.python_tests
            what = "blocks of Python that python/unittest runs with stand-ins" if with_stand_ins else "blocks of Python compiled only"
            self.leave_out(where, what, block.text, why)
            return
        self.count("blocks of Python run")
        error = session.run(block.text)
        if error:
            self.fail(where, error)

    def run_c(self, where, block, page, number):
        if f"docs/{QUOTES}/" in page:
            headers = "".join(path.read_text() for path in sorted((self.source / "include/hbp").glob("*.h")))
            flat = " ".join(headers.replace("\\\n", " ").split())
            for line in block.lines:
                piece = " ".join(line.rstrip("\\").removesuffix("*/").split())
                if piece != "..." and piece not in flat:
                    self.fail(where, f"no header has '{piece}'")
            self.count("blocks of C that quote headers")
            return
        around = self.source / "tests/whole/pages" / f"{Path(page).stem.replace('-', '_')}_{number}.c"
        if not around.exists():
            self.fail(where, f"a C block without {around.relative_to(self.source)}")
            return
        (self.here / "build/block.inc").write_text(block.text)
        library = self.here / "build/quickstart/lib"
        command = [os.environ.get("CC", "cc"), *COMPILE, "-Iinclude", "-Ibuild", str(around), f"-L{library}", "-lhbp", f"-Wl,-rpath,{library}", "-o", "build/block"]
        for step in (command, ["build/block"]):
            result = subprocess.run(step, cwd=self.here, env=self.environment, capture_output=True, text=True)
            if result.returncode != 0:
                self.fail(where, f"{step[0]}: {result.stderr[-2000:]}")
                return
        self.count("blocks of C run")


    def tables(self):
        """Numbers in tables that no block shows: README's are rows of the tutorial's, and options of hbp vlm give what is said of them."""
        tutorial = (self.source / "docs/tutorial.md").read_text()
        rows = [" ".join(re.sub("[▏▎▍▌▋▊▉█│]+>?", " ", line).split()) for block in read_blocks(self.source / "docs/tutorial.md") for line in block.lines]
        for name, epoch, times, idle in re.findall(r"^\| (.+?) \|.*\| ([\d.]+ h) \| ([\d.]+) \| ([\d.]+ %) \|$", (self.source / "README.md").read_text(), re.M):
            same = [row for row in rows if f" {epoch} {times} " in row and f" {idle} " in row]
            if not same and not ("--composition" in name and f"{epoch} (" in tutorial):
                self.fail("README.md", f"'{name}' with {epoch}, {times}, {idle} is no row of docs/tutorial.md")
            self.count("rows of README's table compared")
        page = (self.source / "docs/how-to/vision-language.md").read_text()
        base = re.search(r"^build/hbp vlm .*--stages 4$", page, re.M).group(0)
        for options, days in re.findall(r"^\| `(--[^`]*)` \| ([\d.]+) \|$", page, re.M):
            printed = subprocess.run(["sh", "-c", f"{base} {options}"], cwd=self.root, env=self.environment, capture_output=True, text=True).stdout
            if f" {days} GPU-days" not in printed:
                self.fail("docs/how-to/vision-language.md", f"{options} does not take {days} GPU-days: {printed[-200:]}")
            self.count("rows of options of hbp vlm run")


class Session:
    """One Python in which blocks run one after another, as typed into build/python."""

    def __init__(self, run):
        self.run_of, self.process = run, None

    def run(self, code):
        if self.process is None:
            self.process = subprocess.Popen(
                ["build/python", str(Path(__file__).resolve()), "--session"],
                cwd=self.run_of.here, env=self.run_of.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )
        print(json.dumps(code), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else "the interpreter ended"

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


def serve():
    """A session's own end: runs what comes as JSON lines in one namespace, and answers what went wrong, or null."""
    import contextlib
    import io
    import traceback

    names, answers = {"__name__": "__main__"}, sys.stdout
    for line in sys.stdin:
        error = None
        with contextlib.redirect_stdout(io.StringIO()):
            try:
                exec(compile(json.loads(line), "<block>", "exec"), names)
            except Exception:
                error = traceback.format_exc(limit=-4)
        print(json.dumps(error), file=answers, flush=True)


def main():
    root, source, python = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    run = Run(root, source, python)
    pages = ["README.md"] + sorted(str(page.relative_to(source)) for page in (source / "docs").rglob("*.md"))
    only = sys.argv[4:]
    for name in pages:
        if f"/{SKIPPED_PAGES}/" not in name and (not only or name in only):
            run.page(name)
    if not only:
        run.tables()
        for what, least in (("lines of sh run alone", 60), ("outputs compared", 9 if "HBP_ALL_ROUNDS" in os.environ else 8), ("blocks of Python run", 15), ("blocks of C run", 10), ("rows of options of hbp vlm run", 5), ("rows of README's table compared", 7)):
            if run.counts.get(what, 0) < least and (python or "Python" not in what):
                run.fail("all pages", f"hardly any {what}: {run.counts.get(what, 0)}")
    print("\nin all: " + ", ".join(f"{number} {what}" for what, number in sorted(run.counts.items())))
    print("slowest: " + ", ".join(f"{where} {seconds:.0f} s" for seconds, where in sorted(run.slow)[:-7:-1]))
    print(f"{len(run.failures)} failures")
    return bool(run.failures)


if __name__ == "__main__":
    if sys.argv[1:] == ["--session"]:
        serve()
    else:
        sys.exit(main())
