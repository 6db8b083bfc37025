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
    return everything, [
        {"number": step["step"], "ns": step["ns"], "micro_batches": [
            [{"rank": p["rank"], "sp": p["sp"], "recompute": p["recompute"], "ns": p["ns"], "tokens": p["tokens"],
              "padded": p["padded_tokens"], "samples": len(p["sample_ids"]), "bytes": p["bytes"], "capacity": p["capacity"],
              "ids": p["sample_ids"], "lengths": p["sample_tokens"]} for p in batch["packs"]]
            for batch in step["micro_batches"]]}
        for step in everything["steps"]]


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
        run("tasks", "clip-4", "--machine", "a800-80:1", "-o", "tasks.msgpack", "--run-out", "run.msgpack")
        for name in ("epoch", "random", "lanes", "waits", "one", "vision", "tasks"):
            run("report", f"{name}.msgpack", "-o", f"{name}.html")
        run("report", "run.msgpack", "--schedule", "tasks.msgpack", "-o", "run.html")

    def test_every_pack_is_the_plans(self):
        for name in ("epoch", "random", "lanes", "waits", "one", "vision"):
            _, report, columns = page_of(f"{name}.html")
            self.assertEqual(picture(report, "step")["tick_ns"], 1)
            self.assertEqual(decoded(report, columns), dumped(f"{name}.msgpack")[1], name)

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
            self.assertEqual(dict(map(tuple, report["facts"]))["waiting"], f"{100 * made['idle']:.2f} %")
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
            self.assertEqual(len(groups), name == "hierarchy")
            if groups:
                chosen = next(row["label"] for row in groups[0]["rows"] if row["mark"])
                known = re.findall(r"([0-9,]+) at SP ([0-9]+)", chosen)
                self.assertEqual(chosen.count(" at SP "), len(known))
                self.assertLessEqual({(int(capacity.replace(",", "")), int(sp)) for capacity, sp in known}, types)
            longest = max(packs, key=lambda p: p["padded"])
            row = next(row for row in picture(report, "degrees")["rows"] if row["mark"])
            if not longest["recompute"]:
                self.assertIn(f"fits: {time_text(longest['ns'])}, {time_text(longest['ns'] * longest['sp'])} of GPU time", row["text"])

    def test_pipes_modes_and_costs(self):
        os.mkfifo("fifo")
        reader = subprocess.Popen(["cat", "fifo"], stdout=subprocess.PIPE)
        run("report", "one.msgpack", "-o", "fifo")
        self.assertIn(b"</html>", reader.communicate()[0])
        os.remove("fifo")
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
            if child.returncode == 0:
                os.remove("n.html")
            self.assertIn(child.returncode, (0, 130, -signal.SIGINT))
            self.assertFalse([name for name in os.listdir(".") if name.startswith(".hbp") or name == "n.html"])

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
        for name in ("epoch", "random", "lanes", "waits", "one", "vision", "tasks", "run"):
            dom, said = browse(f"{name}.html", "#tables")
            self.assertEqual(said, [], name)
            self.assertNotIn("data-failed", dom, name)
            self.assertIn(f'data-drawn="{len(page_of(f"{name}.html")[1]["pictures"])}"', dom, name)
            self.assertEqual(dom.count('<summary>The data as a table</summary>'), dom.count("<tbody>"), name)
            self.assertNotIn("NaN", dom.split("<script", 1)[0], name)

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
