"""The page of `hbp report` says what the plan says: every pack of every step that it holds, totals by rank, lengths, time and
waiting, against `hbp dump` and `hbp show`; and in headless Chromium, where there is one, it draws all of it without an error.

usage: report.py PROGRAMS SOURCE"""

import base64
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAMS, SOURCE = sys.argv[1:3]
ON = ["--model", "llama-3.1-8b", "--machine", "h100:2"]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def run(*arguments, status=0, program="hbp"):
    made = subprocess.run([os.path.join(PROGRAMS, program), *map(str, arguments)], capture_output=True, text=True)
    assert made.returncode == status, f"{arguments}: {made.returncode}, {made.stderr}{made.stdout}"
    return made.stdout if status == 0 else made.stderr


def page_of(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    report = json.loads(re.search(r'<script type="application/json" id="report">(.*?)</script>', text, re.S).group(1))
    packed = re.search(r'<script type="application/octet-stream" id="columns">(.*?)</script>', text, re.S).group(1)
    data, at, columns = zlib.decompress(base64.b64decode(packed)) if packed.strip() else b"", 0, {}
    for column in report["columns"]:
        values = []
        for _ in range(column["count"]):
            value = shift = 0
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            values.append(value)
        columns[column["name"]] = values
    assert at == len(data)
    return text, report, columns


def picture(report, name):
    return next(p for p in report["pictures"] if p["id"] == name)


def signed(value):
    return -(value + 1) // 2 if value % 2 else value // 2


def decoded(report, columns):
    """The steps of the page as lists of micro-batches of packs."""
    about, steps = picture(report, "step"), []
    batch = pack = sample = 0
    for number, batches, ticks, listed in zip(
        columns["step_number"], columns["step_micro_batches"], columns["step_ticks"], columns["step_listed"]
    ):
        step = {"number": number, "ns": ticks * about["tick_ns"], "micro_batches": []}
        for _ in range(batches):
            packs, next_rank = [], 0
            for _ in range(columns["micro_batch_packs"][batch]):
                rank = next_rank + signed(columns["pack_gap"][pack])
                sp, samples = columns["pack_sp"][pack], columns["pack_samples"][pack]
                end = sample + (samples if listed else 0)
                packs.append({
                    "rank": rank, "sp": sp, "recompute": columns["pack_recompute"][pack],
                    "ns": columns["pack_ticks"][pack] * about["tick_ns"], "tokens": columns["pack_tokens"][pack],
                    "padded": columns["pack_tokens"][pack] + columns["pack_padding"][pack], "samples": samples,
                    "bytes": columns["pack_bytes"][pack] * about["tick_bytes"], "capacity": columns["pack_capacity"][pack],
                    "ids": columns["sample_ids"][sample:end], "lengths": columns["sample_tokens"][sample:end]})
                next_rank, pack, sample = rank + sp, pack + 1, end
            step["micro_batches"].append(packs)
            batch += 1
        steps.append(step)
    return steps


def dumped(plan):
    """The same of the plan's JSON."""
    run("dump", plan, "-o", "dump.json")
    with open("dump.json", encoding="utf-8") as file:
        everything = json.load(file)
    pipelines = everything["vlm"]["step_ns"] if "vlm" in everything else [step["ns"] for step in everything["steps"]]
    return everything, [
        {"number": step["step"], "ns": ns, "micro_batches": [
            [{"rank": p["rank"], "sp": p["sp"], "recompute": p["recompute"], "ns": p["ns"], "tokens": p["tokens"],
              "padded": p["padded_tokens"], "samples": len(p["sample_ids"]), "bytes": p["bytes"], "capacity": p["capacity"],
              "ids": p["sample_ids"], "lengths": p["sample_tokens"]} for p in batch["packs"]]
            for batch in step["micro_batches"]]}
        for step, ns in zip(everything["steps"], pipelines)]


def operations(report, columns):
    """What every stage runs, as the page's script adds it up: (step, replica, stage, chunk, micro-batch, backward, start, time)."""
    about, rows, row = picture(report, "step"), [], 0
    for number, batches in zip(columns["step_number"], columns["step_micro_batches"]):
        for lane in range(about["lanes"]):
            free = 0
            for _ in range(2 * batches * about["chunks"] // about["stages"]):
                start = free + columns["operation_free"][row] * about["tick_ns"]
                ns = columns["operation_ticks"][row] * about["tick_ns"]
                rows.append((number, *divmod(lane, about["stages"]), columns["operation_chunk"][row], columns["operation_micro_batch"][row],
                             columns["operation_direction"][row], start, ns))
                free, row = start + ns, row + 1
    return rows


def traced(plan):
    """The same of the plan's trace, whose times count from the first step's begin."""
    run("trace", plan, "--steps", 0, "-o", "trace.json")
    with open("trace.json", encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    begins = {int(e["name"].split()[1]): e["ts"] for e in events if e["cat"] == "step"}
    return [(e["args"]["step"], *divmod(e["tid"] - 1, 4), e["args"]["chunk"], e["args"]["micro_batch"], int(e["cat"] == "backward"),
             round(1000 * (e["ts"] - begins[e["args"]["step"]])), round(1000 * e["dur"])) for e in events if e["cat"] != "step"]


def browse(path, hash="", script=""):
    """What Chromium makes of the page, and what it says on its console."""
    if script:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        path = "scripted.html"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("</body>", f"<script>{script}</script></body>"))
    made = subprocess.run(
        [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--window-size=1000,800",
         f"--user-data-dir={os.getcwd()}/browser", "--virtual-time-budget=10000", "--dump-dom",
         f"file://{os.path.abspath(path)}{hash}"], capture_output=True, text=True, timeout=120)
    said = [line for line in made.stderr.splitlines() if "CONSOLE" in line]
    return made.stdout, said


def cells(dom, caption):
    """The rows of the table under a picture's title, as texts."""
    figure = re.search(rf"<figure[^>]*>(?:(?!</figure>).)*{re.escape(caption)}.*?</figure>", dom, re.S).group(0)
    rows = re.findall(r"<tr>(.*?)</tr>", figure, re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows]


def time_text(ns):
    for size, name, digits in ((86400e9, "d", 3), (3600e9, "h", 3), (60e9, "min", 2), (1e9, "s", 2), (1e6, "ms", 2), (1e3, "us", 2)):
        if ns >= size:
            return f"{ns / size:.{digits}f} {name}"
    return f"{ns} ns"


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run(f"{SOURCE}/examples/data/wikipedia.csv", "l.npy", 4000, 1, 131072, program="draw_lengths")
        run("plan", "l.npy", *ON, "-o", "epoch.msgpack")
        run("plan", "l.npy", *ON, "--samples-per-step", 500, "-o", "random.msgpack")
        run("plan", "l.npy", *ON, "--samples-per-step", 500, "--zero", 1, "--lockstep-ranks", 1, "-o", "lanes.msgpack")
        run("plan", "l.npy", *ON, "--method", "no-packing", "-o", "waits.msgpack")
        run("step", "l.npy", *ON, "--samples-per-step", 256, "-o", "one.msgpack")
        run(f"{SOURCE}/examples/data/vlm.csv", "v.csv", 3000, program="draw_lengths")
        run("vlm", "v.csv", "--vision-column", "vision", "--vlm", "internvl-1.5-26b", "--machine", "a100-80:8",
            "--tensor-parallel", 4, "--stages", 4, "-o", "vision.msgpack")
        run("vlm", "v.csv", "--vision-column", "vision", "--vlm", "internvl-1.5-26b", "--machine", "a100-80:8",
            "--tensor-parallel", 4, "--stages", 4, "--virtual-stages", 2, "-o", "interleaved.msgpack")
        run("tasks", "clip-4", "--machine", "a800-80:1", "-o", "tasks.msgpack", "--run-out", "run.msgpack")
        for name in ("epoch", "random", "lanes", "waits", "one", "vision", "interleaved", "tasks"):
            run("report", f"{name}.msgpack", "-o", f"{name}.html")
        run("report", "run.msgpack", "--schedule", "tasks.msgpack", "-o", "run.html")

    def test_every_pack_is_the_plans(self):
        for name in ("epoch", "random", "lanes", "waits", "one", "vision"):
            _, report, columns = page_of(f"{name}.html")
            self.assertEqual(picture(report, "step")["tick_ns"], 1)
            self.assertEqual(decoded(report, columns), dumped(f"{name}.msgpack")[1], name)

    def test_every_operation_is_the_plans(self):
        for name in ("vision", "interleaved"):
            _, report, columns = page_of(f"{name}.html")
            rows = operations(report, columns)
            self.assertEqual(sorted(rows), sorted(traced(f"{name}.msgpack")))
            self.assertEqual(len({row[1] for row in rows}), 4)
            panel = picture(report, "stages")["panels"][0]["series"]
            for stage in range(4):
                forward, backward, waiting = (series["values"][stage] for series in panel)
                self.assertAlmostEqual(4 * forward, sum(row[7] for row in rows if row[2] == stage and not row[5]), delta=4)
                self.assertAlmostEqual(4 * backward, sum(row[7] for row in rows if row[2] == stage and row[5]), delta=4)
                self.assertAlmostEqual(forward + backward + waiting, sum(columns["step_ticks"]), delta=3)

    def test_show_draws_the_same_stages(self):
        for name in ("vision", "interleaved"):
            _, report, columns = page_of(f"{name}.html")
            at = len(columns["step_number"]) // 2
            number, step_ns = columns["step_number"][at], columns["step_ticks"][at]
            lines = re.findall(r"^  replica (\d+), stage (\d+) +([FB.]+) +([0-9.]+) %$", run("show", f"{name}.msgpack", "--step", number), re.M)
            rows = [row for row in operations(report, columns) if row[0] == number]
            expected = []
            for replica, stage in sorted({row[1:3] for row in rows}):
                own = [row for row in rows if row[1:3] == (replica, stage)]
                width, looks = len(lines[0][2]), ""
                for i in range(width):
                    here = [row for row in own if row[6] <= (i + 0.5) / width * step_ns < row[6] + row[7]]
                    looks += "FB"[here[0][5]] if here else "."
                expected.append((str(replica), str(stage), looks, f"{100 * (1 - sum(row[7] for row in own) / step_ns):.2f}"))
            self.assertEqual(lines, expected)
            one = re.findall(r"^  replica (\d+), stage", run("show", f"{name}.msgpack", "--step", number, "--rank", 1), re.M)
            self.assertEqual(one, ["1"] * 4)

    def test_facts_and_totals(self):
        for name in ("epoch", "random", "lanes", "waits"):
            _, report, _ = page_of(f"{name}.html")
            shown = json.loads(run("show", f"{name}.msgpack", "--json"))
            facts = dict(map(tuple, report["facts"]))
            self.assertEqual(facts["samples"], f"{shown['samples']:,}")
            self.assertEqual(facts["tokens"], f"{shown['tokens']:,}")
            self.assertEqual(facts["steps"], f"{shown['steps']:,}")
            self.assertEqual(facts["predicted epoch"], time_text(shown["predicted_ns"]))
            self.assertEqual(facts["digest"], shown["digest"])
            series = picture(report, "ranks")["panels"][0]["series"]
            self.assertEqual(len(series[0]["values"]), shown["ranks"])
            for rank in range(shown["ranks"]):
                total = sum(one["values"][rank] for one in series)
                self.assertAlmostEqual(total / shown["predicted_ns"], 1, delta=1e-7)
            for panel, total in zip(picture(report, "lengths")["panels"], (shown["samples"], shown["tokens"])):
                self.assertEqual(sum(sum(one["values"]) for one in panel["series"]), total)
            bars = picture(report, "methods") if shown["bound_ns"] else None
            if bars:
                self.assertEqual(bars["rows"][0]["value"], shown["predicted_ns"])
                self.assertEqual(bars["limit"]["value"], shown["bound_ns"])

    def test_waiting_is_the_simulators(self):
        for options in ([], ["--samples-per-step", "500"], ["--method", "no-packing"],
                        ["--samples-per-step", "500", "--zero", "1", "--lockstep-ranks", "1"]):
            made = json.loads(run("plan", "l.npy", *ON, *options, "-o", "p.msgpack", "--json"))
            run("report", "p.msgpack", "-o", "p.html")
            _, report, _ = page_of("p.html")
            self.assertEqual(dict(map(tuple, report["facts"]))["idle"], f"{100 * made['idle']:.2f} %")
            parts = [one["values"] for one in picture(report, "memory")["panels"][0]["series"]]
            self.assertEqual(len(parts), 2)
            self.assertEqual(max(map(sum, zip(*parts))), made["peak_bytes"])

    def test_all_to_all_is_the_simulators(self):
        """The share of communication, which the simulator has from the samples, is that of the bars."""
        made = subprocess.run([sys.executable, "-c", (
            "import hbp; f = hbp.PlanFile('random.msgpack'); print(hbp.simulate(hbp.Plan.load('random.msgpack'), f.cost()).communication)")],
            capture_output=True, text=True)
        if made.returncode:
            self.skipTest("no hbp in this Python")
        _, report, _ = page_of("random.html")
        parts = {one["label"]: sum(one["values"]) for one in picture(report, "ranks")["panels"][0]["series"]}
        self.assertAlmostEqual(parts["all-to-all"] / sum(parts.values()), float(made.stdout), delta=1e-6)

    def test_composition_adds_up(self):
        for name in ("random", "epoch"):
            _, report, columns = page_of(f"{name}.html")
            steps = {step["number"]: step for step in decoded(report, columns)}
            shown = picture(report, "composition")
            for k, number in enumerate(shown["names"]):
                step = steps[int(number)]
                tokens = sum(p["tokens"] for batch in step["micro_batches"] for p in batch)
                self.assertEqual(sum(one["values"][k] for one in shown["panels"][0]["series"]), tokens)
                self.assertEqual(shown["panels"][1]["series"][0]["values"][k], step["ns"])

    def test_reasons_are_of_this_plan(self):
        """Groups are those of the plan or not shown; the longest pack's time at its own degree is its time."""
        run("plan", "l.npy", *ON, "--max-groups", 1, "--composition", "hierarchy", "-o", "p.msgpack")
        run("plan", "l.npy", *ON, "--composition", "hierarchy", "-o", "hierarchy.msgpack")
        for name in ("p", "waits", "hierarchy"):
            run("report", f"{name}.msgpack", "-o", "p.html")
            _, report, columns = page_of("p.html")
            packs = [p for step in decoded(report, columns) for batch in step["micro_batches"] for p in batch if p["samples"]]
            groups = [one for one in report["pictures"] if one["id"] == "groups"]
            types = {(p["capacity"], p["sp"]) for p in packs}
            why = [one["answer"] for one in report["pictures"] if one["id"] == "no-groups"]
            self.assertEqual((len(groups), len(why)), (name == "hierarchy", name != "hierarchy"), name)
            if groups:
                chosen = next(row["label"] for row in groups[0]["rows"] if row["mark"])
                known = re.findall(r"([0-9,]+) at SP ([0-9]+)", chosen)
                self.assertEqual(chosen.count(" at SP "), len(known))
                self.assertLessEqual({(int(capacity.replace(",", "")), int(sp)) for capacity, sp in known}, types)
            longest = max(packs, key=lambda p: p["padded"])
            row = next(row for row in picture(report, "degrees")["rows"] if row["mark"])
            if not longest["recompute"]:
                self.assertIn(f"fits: {time_text(longest['ns'])}, {time_text(longest['ns'] * longest['sp'])} of GPU time", row["text"])

    def test_steps_without_groups_say_why(self):
        run("plan", "l.npy", *ON, "--composition", "random", "-o", "drawn.msgpack")
        run("report", "drawn.msgpack", "-o", "drawn.html")
        for name in ("drawn", "random"):
            self.assertIn("drawn at random before packs were planned", picture(page_of(f"{name}.html")[1], "no-groups")["answer"])
        self.assertFalse([one for one in page_of("one.html")[1]["pictures"] if "groups" in one["id"]])

    def test_bins_are_round_and_borders_at_their_place(self):
        """2K, 3K, 4K, 6K: every bin's samples are those of the plan, a border is where its pack's length is."""
        for name in ("epoch", "random"):
            _, report, columns = page_of(f"{name}.html")
            shown, lengths = picture(report, "lengths"), {}
            for step in decoded(report, columns):
                for p in (p for batch in step["micro_batches"] for p in batch if p["samples"]):
                    lengths.setdefault(p["sp"], []).extend(p["lengths"])
            edges = [round(float(n.rstrip("K")) * (1024 if n.endswith("K") else 1)) for n in shown["names"]]
            for low, high in zip(edges, edges[1:]):
                self.assertIn(high / low, (2, 1.5, 4 / 3))
            self.assertTrue(all(e & (e - 1) == 0 or e % 3 == 0 and e // 3 & (e // 3 - 1) == 0 for e in edges), edges)
            for panel, weigh in zip(shown["panels"], (lambda n: 1, lambda n: n)):
                for one in panel["series"]:
                    own = lengths[int(re.match("SP ([0-9]+)", one["label"]).group(1))]
                    for i, high in enumerate(edges):
                        low = edges[i - 1] if i else 0
                        self.assertEqual(one["values"][i], sum(weigh(n) for n in own if low < n <= high))
            for border in shown["borders"]:
                text = border["label"].split()[-1].replace(",", "")
                length = int(text.rstrip("K")) * (1024 if text.endswith("K") else 1)
                i = min(int(border["at"]), len(edges) - 1)
                low = edges[i - 1] if i else 0
                self.assertAlmostEqual(low + (border["at"] - i) * (edges[i] - low), length, delta=1e-3 * length)

    def test_colours_have_one_meaning(self):
        """A degree has its colour in all pictures, a part of time its own, and none has two meanings."""
        for name in ("epoch", "random", "lanes", "waits", "one", "vision", "run"):
            meanings = {}
            for one in page_of(f"{name}.html")[1]["pictures"]:
                for s in [s for panel in one.get("panels", []) for s in panel["series"]] + one.get("rows", []):
                    if s.get("colour", "plain") != "plain":
                        degree = re.match("SP [0-9]+", s["label"])
                        meanings.setdefault(s["colour"], set()).add(degree.group(0) if degree else s["label"].split(":")[0].split(",")[0])
                        self.assertEqual(s["colour"].startswith("sp "), bool(degree))
            for colour, of in meanings.items():
                self.assertEqual(len(of), 1, f"{name}: {colour}")
            with open(f"{SOURCE}/examples/hbp/report/page/page.css", encoding="utf-8") as file:
                css = file.read()
            for colour in ("compute", "exchange", "once", "step", "wait", "states", "activations", "plain", "mark", "sp-low", "sp-high", "length-low", "length-high"):
                self.assertEqual(css.count(f"--{colour}:"), 2, colour)  # light and dark

    def test_words_are_the_glossarys(self):
        with open(f"{SOURCE}/docs/glossary.md", encoding="utf-8") as file:
            rows = [line.strip().strip("|").split(" | ", 1) for line in file if line.startswith("| ")]
        meanings = {re.split(r" \(|, ", term.strip())[0]: meaning.strip().replace("`", "") for term, meaning in rows}
        for name in ("epoch", "random", "lanes", "waits", "one", "vision", "tasks", "run"):
            text, report, _ = page_of(f"{name}.html")
            for term, meaning in report["terms"]:
                self.assertEqual(meanings[term], meaning, term)
            known = {term for term, _ in report["terms"]}
            seen = json.dumps([report["lead"], report["facts"], report["pictures"]])
            for term in ("MetaOp", "mixture distance", "lockstep set", "replica", "all-to-all", "ZeRO", "idle", "bound"):
                self.assertEqual(term in known, bool(re.search(rf"(?i)\b{term}s?\b", seen)), f"{name}: {term}")
            for word in ("contract", "ABR", "squares", "time that work takes"):
                self.assertNotIn(word, seen)

    def test_how_full_steps_are(self):
        """Page, plan and show say the same; the space is that of the median step's packs."""
        for options, says in (
                (["--composition", "hierarchy", "--tokens-per-step", 262144], "a step is whole micro-batches;.*and one more would not fit; packs of 16,384 tokens would fill it, but with [0-9]+ layers recomputed instead of 0$"),
                (["--composition", "random", "--tokens-per-step", 150000], "the first that does not fit opens the next step$"),
                (["--composition", "hierarchy"], "tokens do not fit into fewer than [0-9]+ steps$"), (["--samples-per-step", 500], None)):
            made = run("plan", "l.npy", *ON, *options, "-o", "p.msgpack")
            run("report", "p.msgpack", "-o", "p.html")
            _, report, columns = page_of("p.html")
            line = [one for one in made.splitlines() if one.startswith("steps hold ")]
            self.assertEqual([one for one in run("show", "p.msgpack").splitlines() if one.startswith("steps hold ")], line)
            self.assertEqual([f"s{one[1:-1]}" for one in report["lead"] if one.startswith("Steps hold ")], line)
            self.assertEqual(len(line), says is not None)
            if says is None:
                continue
            self.assertRegex(line[0], says)
            steps, most = decoded(report, columns), json.loads(run("show", "p.msgpack", "--json"))["tokens_per_step"]
            packs = [[p for batch in step["micro_batches"] for p in batch] for step in steps]
            share = sum(p["tokens"] for step in packs for p in step) / (len(steps) * most)
            self.assertIn(f"steps hold {100 * share:.2f} % of the {most:,} tokens", line[0])
            space = re.search("with space for ([0-9,]+) tokens", line[0])
            if space:
                held = sorted(sum(p["capacity"] for p in step) for step in packs)
                self.assertEqual(f"{held[len(held) // 2]:,}", space.group(1))

    def test_mixture_distance_is_the_plans(self):
        made = json.loads(run("plan", "l.npy", *ON, "-o", "p.msgpack", "--json"))
        self.assertIn(f"{made['mixture_distance']:.3f} from the epoch's", picture(page_of("epoch.html")[1], "composition")["answer"])

    def test_all_tasks_are_in_the_legend(self):
        run("tasks", "clip-10", "--machine", "a800-80:1", "-o", "ten.msgpack")
        run("report", "ten.msgpack", "-o", "ten.html")
        shown = picture(page_of("ten.html")[1], "step")
        self.assertEqual(len({one["name"] for one in shown["legend"]}), 10)
        self.assertEqual(len({one["colour"] for one in shown["legend"]}), 10)
        colours = {one["name"]: one["colour"] for one in shown["legend"]}
        for label in shown["labels"]:
            self.assertEqual(label["colour"], colours[label["name"].split(" of ")[-1]])

    def test_pipes_modes_and_costs(self):
        os.mkfifo("fifo")
        reader = subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE)
        run("report", "one.msgpack", "-o", "fifo")
        self.assertIn(b"</html>", reader.communicate()[0])
        os.remove("fifo")
        with open("held.html", "w+b") as held:  # an open file is written on from where it stands
            held.write(b"before\n")
            held.flush()
            subprocess.run([os.path.join(PROGRAMS, "hbp"), "report", "one.msgpack", "-o", f"/dev/fd/{held.fileno()}"], pass_fds=[held.fileno()],
                           check=True, stdout=subprocess.DEVNULL)
            held.write(b"behind\n")
            held.seek(0)
            self.assertRegex(held.read(), rb"(?s)^before\n<!doctype.*</html>\nbehind\n$")
        with open("held.html", "rb") as held:
            made = subprocess.run([os.path.join(PROGRAMS, "hbp"), "report", "one.msgpack", "-o", f"/dev/fd/{held.fileno()}"], pass_fds=[held.fileno()],
                                  capture_output=True)
            self.assertEqual((made.returncode, held.read()[:7]), (1, b"before\n"))
        os.remove("held.html")
        run("report", "one.msgpack", "-o", "kept.html")
        os.chmod("kept.html", 0o600)
        run("report", "one.msgpack", "-o", "kept.html")
        self.assertEqual(os.stat("kept.html").st_mode & 0o777, 0o600)
        run("report", "epoch.msgpack", *ON, "-o", "p.html")
        for cost in (["--model", "qwen2-7b", "--machine", "h100:2"], [*ON, "--fused-ce", "--sp-overlap", ".5"]):
            self.assertRegex(run("report", "random.msgpack", *cost, "-o", "n.html", status=1), "made under another cost")
        self.assertIn("vision-language", run("report", "vision.msgpack", *ON, "-o", "n.html", status=2))
        self.assertFalse(os.path.exists("n.html"))

    def test_a_run_of_tasks_is_what_the_page_is_of(self):
        shown = json.loads(run("show", "run.msgpack", "--json"))
        facts = dict(map(tuple, page_of("run.html")[1]["facts"]))
        self.assertEqual(facts["with transfers and gradients"], time_text(shown["total_ns"]))
        self.assertEqual(facts["idle"], f"{100 * shown['run_idle']:.2f} %")
        self.assertEqual(facts["digest"], shown["digest"])

    def test_measured_beside_predicted(self):
        _, packs = dumped("epoch.msgpack")
        lines = ["# ranks: 16", "step,micro_batch,first_rank,sp,recompute,tokens,sum_squares,time_ns"]
        for step in packs[:3]:
            for m, batch in enumerate(step["micro_batches"]):
                for p in batch:
                    squares = sum(n * n for n in p["lengths"])
                    lines.append(f"{step['number']},{m},{p['rank']},{p['sp']},{p['recompute']},{p['padded']},{squares},{p['ns'] * 2}")
        with open("t.csv", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        run("report", "epoch.msgpack", "--measured", "t.csv", "-o", "m.html")
        _, report, columns = page_of("m.html")
        points = picture(report, "measured")["points"]
        self.assertEqual(len(points), len(lines) - 2)
        for predicted, measured, _ in points:
            self.assertEqual(measured, 2 * predicted)
        self.assertIn("off by 50.00 %", picture(report, "measured")["answer"])
        self.assertEqual(sum(v > 0 for v in columns["pack_measured"]), len(points))
        run("report", "t.csv", "-o", "t.html")
        _, report, columns = page_of("t.html")
        self.assertEqual([s["number"] for s in decoded(report, columns)], [s["number"] for s in packs[:3]])
        self.assertRegex(run("report", "t.csv", "--model", "llama-3.1-8b", "--machine", "h100:1", "-o", "n.html", status=1), "8 GPUs .*16 ranks")
        self.assertRegex(run("report", "t.csv", "--step", 3, "-o", "n.html", status=1), "no step 3 in t.csv")
        with open("twice.csv", "w", encoding="utf-8") as file:
            file.write("\n".join([*lines, lines[-1]]) + "\n")
        self.assertRegex(run("report", "twice.csv", "-o", "n.html", status=1), "rows .* both have rank")
        run("report", "t.csv", *ON, "-o", "t.html")
        self.assertEqual(len(picture(page_of("t.html")[1], "measured")["points"]), len(points))
        lines[2] = lines[2].replace(",0,", ",77,", 1)
        with open("bad.csv", "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.assertRegex(run("report", "epoch.msgpack", "--measured", "bad.csv", "-o", "n.html", status=1), "micro-batch 77.*not of this plan")
        self.assertFalse(os.path.exists("n.html"))

    def test_compared(self):
        with open("c.json", "w", encoding="utf-8") as file:
            file.write(run("compare", "l.npy", *ON, "--json"))
        run("report", "epoch.msgpack", "--compared", "c.json", "-o", "c.html")
        rows = {row["label"]: row["value"] for row in picture(page_of("c.html")[1], "methods")["rows"]}
        with open("c.json", encoding="utf-8") as file:
            methods = json.load(file)["methods"]
        for method in methods[1:]:
            self.assertEqual(rows[method["method"]], method.get("epoch_ns"))
        for text, says in (("{", "line 1.*--compared takes"), ("{}", "no list of methods"),
                           ('{"methods": [{"method": "this plan", "epoch_ns": 5}]}', "of other lengths or options")):
            with open("bad.json", "w", encoding="utf-8") as file:
                file.write(text)
            self.assertRegex(run("report", "epoch.msgpack", "--compared", "bad.json", "-o", "n.html", status=1), says)

    def test_ctrl_c(self):
        for wait in (0, .01, .03, .1):
            child = subprocess.Popen([os.path.join(PROGRAMS, "hbp"), "report", "random.msgpack", "-o", "n.html"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(wait)
            child.send_signal(signal.SIGINT)
            child.communicate()
            self.assertIn(child.returncode, (0, 130, -signal.SIGINT))
            self.assertFalse([name for name in os.listdir(".") if name.startswith(".hbp")])
            if os.path.exists("n.html"):  # a signal that comes when the page is already in place
                with open("n.html", encoding="utf-8") as page:
                    self.assertTrue(page.read().endswith("</html>\n"))
                os.remove("n.html")
            else:
                self.assertNotEqual(child.returncode, 0)

    def test_slices_are_the_schedules(self):
        run("dump", "tasks.msgpack", "-o", "s.json")
        with open("s.json", encoding="utf-8") as file:
            schedule = json.load(file)
        _, report, columns = page_of("tasks.html")
        busy = sum(ns * lanes for ns, lanes in zip(columns["slice_ns"], columns["slice_lanes"]))
        self.assertEqual(busy, sum(schedule["columns"]["rank_busy_ns"]))
        self.assertEqual(max(s + n for s, n in zip(columns["slice_start"], columns["slice_ns"])), schedule["makespan_ns"])
        self.assertGreater(len(picture(page_of("run.html")[1], "step")["labels"]), 10)

    def test_it_loads_nothing_and_holds_any_name(self):
        name = 'a<b>&"</script><!--.msgpack'
        shutil.copy("one.msgpack", name.replace("/", "_"))
        run("report", name.replace("/", "_"), "-o", "odd.html")
        text, report, _ = page_of("odd.html")
        self.assertEqual(report["title"], name.replace("/", "_"))
        self.assertEqual(text.count("</script>"), 3)
        for page in ("odd.html", "epoch.html", "run.html"):
            with open(page, encoding="utf-8") as file:
                links = set(re.findall(r"(?:https?:)?//[a-z0-9.]+[a-z]/?[^\s'\"]*", file.read()))
            self.assertEqual({link for link in links if link.startswith("http")}, {"http://www.w3.org/2000/svg"})

    def test_what_it_refuses(self):
        before = sorted(os.listdir("."))
        for status, arguments, says in (
                (2, ["report", "epoch.msgpack"], "-o report.html"),
                (2, ["report"], "needs PLAN"),
                (1, ["report", "absent.msgpack", "-o", "n.html"], "cannot open absent.msgpack"),
                (1, ["report", "l.npy", "-o", "n.html"], "l.npy"),
                (1, ["report", "epoch.msgpack", "-o", "no/n.html"], "no/n.html|no"),
                (1, ["report", "epoch.msgpack", "--step", "999", "-o", "n.html"], "no step 999; .* holds steps 0 to"),
                (2, ["report", "epoch.msgpack", "-o", "epoch.msgpack"], "written over"),
                (2, ["report", "run.msgpack", "-o", "n.html"], "needs --schedule"),
                (2, ["report", "tasks.msgpack", "--step", "3", "-o", "n.html"], "--step"),
                (2, ["report", "epoch.msgpack", "--schedule", "tasks.msgpack", "-o", "n.html"], "--schedule"),
                (2, ["report", "epoch.msgpack", "--model", "llama-3.1-8b", "-o", "n.html"], "--machine"),
                (1, ["report", "epoch.msgpack", "--model", "llama-3.1-8b", "--machine", "h100:4", "-o", "n.html"], "32 GPUs .*16 GPUs")):
            made = subprocess.run([os.path.join(PROGRAMS, "hbp"), *arguments], capture_output=True, text=True)
            self.assertRegex(made.stderr, says, arguments)
            self.assertIn(made.returncode, (1, 2) if "no/n.html" in arguments else (status,), arguments)
            self.assertEqual(made.stdout, "")
        self.assertEqual(sorted(os.listdir(".")), before)

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_in_a_browser(self):
        for name in ("epoch", "random", "lanes", "waits", "one", "vision", "interleaved", "tasks", "run"):
            dom, said = browse(f"{name}.html", "#tables")
            self.assertEqual(said, [], name)
            self.assertNotIn("data-failed", dom, name)
            self.assertIn(f'data-drawn="{len(page_of(f"{name}.html")[1]["pictures"])}"', dom, name)
            self.assertEqual(dom.count('<summary>The data as a table</summary>'), dom.count("<tbody>"), name)
            self.assertNotIn("NaN", dom.split("<script", 1)[0], name)
            self.assertEqual("pack of" in dom.split("<script", 1)[0], name not in ("tasks", "run"), name)
            self.assertIn("Words on this page", dom)

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_the_drawn_step_is_the_plans(self):
        for name in ("waits", "random"):
            steps = dumped(f"{name}.msgpack")[1]
            step = steps[len(steps) // 2]
            dom, said = browse(f"{name}.html", f"#tables&step={step['number']}")
            self.assertEqual(said, [])
            rows = cells(dom, "What is in a step")[1:]
            begin, expected = 0, []
            for m, batch in enumerate(step["micro_batches"]):
                longest = max(p["ns"] for p in batch)
                for p in batch:
                    ranks = f"{p['rank']}-{p['rank'] + p['sp'] - 1}" if p["sp"] > 1 else str(p["rank"])
                    waits = time_text(longest - p["ns"]) if longest > p["ns"] else "-"
                    samples = ", ".join(f"{i} ({n:,})" for i, n in zip(p["ids"], p["lengths"]))
                    expected.append([str(m), ranks, str(p["sp"]), str(p["recompute"]), f"{p['samples']:,}", f"{p['tokens']:,}",
                                     time_text(begin), time_text(p["ns"]), waits, samples])
                begin += longest
            self.assertEqual([row[:8] + [row[10], row[12]] for row in rows], expected)

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_drawn_stages_are_the_plans(self):
        _, report, columns = page_of("interleaved.html")
        number = columns["step_number"][len(columns["step_number"]) // 2]
        dom, said = browse("interleaved.html", f"#tables&step={number}")
        self.assertEqual(said, [])
        rows = cells(dom, "What runs in a step")[1:]
        expected, free = [], {}
        for step, replica, stage, chunk, m, backward, start, ns in operations(report, columns):
            if step == number:
                before = start - free.get((replica, stage), 0)
                free[replica, stage] = start + ns
                expected.append([f"{'backward' if backward else 'forward'} {m}", str(replica), str(stage), str(chunk), time_text(start),
                                 time_text(ns), time_text(before)])
        self.assertEqual([row[:7] for row in rows], expected)

    @unittest.skipUnless(BROWSER, "no Chromium")
    def test_keys_walk_it(self):
        script = """
            const ready = setInterval(() => {
              if (!document.body.dataset.drawn) return;
              clearInterval(ready);
              const view = document.querySelector('#step svg'), press = (key) => document.querySelector('#step svg').dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
              const said = [], note = () => said.push(document.querySelector('#step .details').textContent);
              view.focus(); view.dispatchEvent(new FocusEvent('focus')); note();
              press('ArrowDown'); note();
              press('ArrowRight'); note();
              press('+'); press('0');
              press('PageDown'); said.push(document.querySelector('#step input[type=number]').value);
              document.body.dataset.said = JSON.stringify(said);
            }, 50);"""
        dom, said = browse("waits.html", script=script)
        self.assertEqual(said, [])
        texts = json.loads(re.search(r'data-said="(.*?)"', dom, re.S).group(1).replace("&quot;", '"'))
        step = dumped("waits.msgpack")[1][0]
        first, second = step["micro_batches"][0][:2]
        self.assertIn(f"{first['tokens']:,} tokens", texts[0])
        self.assertIn(f"{second['tokens']:,} tokens", texts[1])
        self.assertIn("micro-batch 1", texts[2])
        self.assertEqual(texts[3], "1")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PROGRAMS, SOURCE = os.path.abspath(PROGRAMS), os.path.abspath(SOURCE)
        os.chdir(folder)
        result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=0).result
        os.chdir(SOURCE)
    if not BROWSER:
        print("without Chromium, the page was read but not drawn")
    sys.exit(not result.wasSuccessful())
