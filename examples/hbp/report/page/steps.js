/* The steps that the page holds, from its compressed columns; and when everything in one of them runs. */

/* Unsigned numbers of 7 bits a byte, the lowest first. */
function readNumbers(bytes, from, amount) {
  let at = from, out = new Int32Array(amount);
  for (let i = 0; i < amount; i++) {
    let byte = bytes[at++], value = byte & 127;
    if (byte < 128) { out[i] = value; continue; }
    for (let shift = 7; byte & 128 && shift < 28; shift += 7) { byte = bytes[at++]; value |= (byte & 127) << shift; }
    if (byte & 128 && out instanceof Int32Array) out = Float64Array.from(out); /* 28 bits did not do */
    for (let scale = 2 ** 28; byte & 128; scale *= 128) { byte = bytes[at++]; value += (byte & 127) * scale; }
    out[i] = value;
  }
  return [out, at];
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const letters = atob(base64), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function readColumns(list) {
  const text = document.getElementById('columns').textContent.trim();
  if (!text || !list) return {};
  const packed = bytesOf(text), unpacking = new DecompressionStream('deflate'), writer = unpacking.writable.getWriter();
  writer.write(packed);
  writer.close();
  const bytes = new Uint8Array(await new Response(unpacking.readable).arrayBuffer());
  const columns = {};
  let at = 0;
  for (const {name, count: amount} of list) [columns[name], at] = readNumbers(bytes, at, amount);
  return columns;
}

/* Where each row's part of the next table begins: sums of counts before it. */
function offsetsOf(counts) {
  const out = new Float64Array(counts.length + 1);
  for (let i = 0; i < counts.length; i++) out[i + 1] = out[i] + counts[i];
  return out;
}

const signed = (v) => v % 2 ? -(v + 1) / 2 : v / 2;

function rankText(first, lanes, noun) {
  return lanes > 1 ? `${noun}s ${first}-${first + lanes - 1}` : `${noun} ${first}`;
}

/* The parts of a pack's time: all-to-alls, what is paid once a micro-batch, the rest; null without a cost. */
function partsOf(terms, pack) {
  if (!terms || !pack.samples) return null;
  const row = terms.degrees.find((d) => d.sp === pack.sp);
  if (!row) return null;
  const again = 1 + terms.recompute_communication * pack.recompute / terms.layers;
  const exchange = (row.latency_ns + row.ns_per_token * pack.padded) * again;
  /* The pack's time without what compute hides of the traffic: on one side of where the two are even all traffic is hidden,
     on the other a share of compute; where that is all of it, compute cannot be told from the time and counts as traffic. */
  const rest = Math.max(0, pack.ns - exchange - terms.pack_ns), overlap = terms.compute_overlap, hidden = rest + terms.traffic_ns;
  const compute = overlap * hidden >= terms.traffic_ns ? hidden : overlap < 1 ? rest / (1 - overlap) : 0;
  return {exchange, once: terms.pack_ns - Math.min(terms.traffic_ns, overlap * compute), compute};
}

/* What timelines share: lanes, one for each rank. */
class Lanes {
  get group() { return 1; } /* lanes that belong together */

  laneText(first, lanes) { return rankText(first, lanes, this.about.lane); }
}

/* Steps of a plan: packs of micro-batches, in lockstep sets of `set` ranks. */
class PlanSteps extends Lanes {
  constructor(timeline, columns) {
    super();
    this.about = timeline;
    this.columns = columns;
    this.ranks = timeline.lanes;
    this.set = timeline.set || timeline.lanes;
    this.count = columns.step_micro_batches.length;
    this.microBatches = offsetsOf(columns.step_micro_batches);
    this.packs = offsetsOf(columns.micro_batch_packs);
    const listed = new Int32Array(columns.pack_samples.length);
    for (let k = 0; k < this.count; k++)
      if (columns.step_listed[k])
        for (let p = this.packs[this.microBatches[k]]; p < this.packs[this.microBatches[k + 1]]; p++) listed[p] = columns.pack_samples[p];
    this.listed = offsetsOf(listed);
    this.ranksOf = new Int32Array(columns.pack_gap.length);
    for (let m = 0; m + 1 < this.packs.length; m++) {
      let next = 0;
      for (let p = this.packs[m]; p < this.packs[m + 1]; p++) {
        this.ranksOf[p] = next + signed(columns.pack_gap[p]);
        next = this.ranksOf[p] + columns.pack_sp[p];
      }
    }
  }

  /* SP degrees, ascending. */
  degrees() {
    const seen = new Set();
    let last = 0;
    for (const sp of this.columns.pack_sp) if (sp !== last) seen.add(last = sp);
    return [...seen].sort((a, b) => a - b);
  }

  number(k) { return this.columns.step_number[k]; }

  hasMeasured(k) {
    const c = this.columns.pack_measured;
    if (!c) return false;
    for (let p = this.packs[this.microBatches[k]]; p < this.packs[this.microBatches[k + 1]]; p++)
      if (c[p]) return true;
    return false;
  }

  pack(p, measured) {
    const c = this.columns, tick = this.about.tick_ns;
    return {pack: p, lane: this.ranksOf[p], lanes: c.pack_sp[p], sp: c.pack_sp[p], recompute: c.pack_recompute[p],
      ns: measured ? Math.max(0, c.pack_measured[p] - 1) * tick : c.pack_ticks[p] * tick, tokens: c.pack_tokens[p], padded: c.pack_tokens[p] + c.pack_padding[p],
      samples: c.pack_samples[p], bytes: c.pack_bytes[p] * this.about.tick_bytes, capacity: c.pack_capacity[p]};
  }

  samples(p) {
    const list = [];
    for (let i = this.listed[p]; i < this.listed[p + 1]; i++) list.push([this.columns.sample_ids[i], this.columns.sample_tokens[i]]);
    return list;
  }

  /* Everything that step k runs: packs with their start, and who waits for whom. */
  read(k, measured) {
    const sets = Math.ceil(this.ranks / this.set), free = new Float64Array(sets), items = [], waits = [];
    const first = this.microBatches[k];
    for (let m = first; m < this.microBatches[k + 1]; m++) {
      const next = Float64Array.from(free), slowest = new Array(sets).fill(null), here = [];
      const busy = new Uint8Array(this.ranks);
      for (let p = this.packs[m]; p < this.packs[m + 1]; p++) {
        const pack = this.pack(p, measured);
        const a = Math.floor(pack.lane / this.set), b = Math.floor((pack.lane + pack.lanes - 1) / this.set);
        pack.microBatch = m - first;
        pack.start = 0;
        let held = null;
        for (let s = a; s <= b; s++) if (free[s] > pack.start) { pack.start = free[s]; held = s; }
        pack.end = pack.start + pack.ns;
        for (let s = a; s <= b; s++) {
          if (pack.start > free[s]) waits.push({lane: s * this.set, lanes: Math.min(this.set, this.ranks - s * this.set), start: free[s], end: pack.start, microBatch: m - first, text: `for ${rankText(held * this.set, this.set, this.about.lane)}, which share its next pack`, before: pack});
          if (pack.end >= next[s]) { next[s] = pack.end; slowest[s] = pack; }
        }
        for (let r = pack.lane; r < pack.lane + pack.lanes; r++) busy[r] = 1;
        pack.parts = partsOf(this.about.terms, pack);
        here.push(pack);
      }
      for (const pack of here) {
        const s = Math.floor(pack.lane / this.set), last = slowest[s];
        if (this.set > 1 && next[s] > pack.end) {
          pack.wait = {lane: pack.lane, lanes: pack.lanes, start: pack.end, end: next[s], microBatch: m - first, pack, text: `for ${rankText(last.lane, last.lanes, this.about.lane)}, whose pack of ${count(last.tokens)} tokens at SP ${last.sp} takes ${time(last.ns)}`};
          waits.push(pack.wait);
        }
        items.push(pack);
      }
      for (let r = 0; r < this.ranks; r++) {
        let end = r;
        const s = Math.floor(r / this.set);
        while (end < this.ranks && !busy[end] && Math.floor(end / this.set) === s) end++;
        if (end > r) {
          if (next[s] > free[s]) waits.push({lane: r, lanes: end - r, start: free[s], end: next[s], microBatch: m - first, text: `without a pack, for ${rankText(slowest[s].lane, slowest[s].lanes, this.about.lane)}`});
          r = end - 1;
        }
      }
      free.set(next);
    }
    const work = Math.max(...free), end = measured ? work : Math.max(work, this.columns.step_ticks[k] * this.about.tick_ns);
    for (let s = 0; s < sets; s++)
      if (work > free[s]) waits.push({lane: s * this.set, lanes: Math.min(this.set, this.ranks - s * this.set), start: free[s], end: work, microBatch: null, text: 'for the end of the step'});
    const tail = end > work ? {lane: 0, lanes: this.ranks, start: work, end} : null;
    const waited = waits.reduce((sum, w) => sum + w.lanes * (w.end - w.start), 0);
    return {items, waits, tail, end, work, waited, idle: work > 0 ? waited / (work * this.ranks) : 0};
  }
}

/* Steps of a vision-language plan: the forward and backward of every micro-batch on the stages of each replica. */
class StageSteps extends PlanSteps {
  constructor(timeline, columns) {
    super(timeline, columns);
    this.stages = timeline.stages;
    this.replicas = timeline.lanes / timeline.stages;
    this.rows = offsetsOf(columns.step_micro_batches.map((count) => this.replicas * this.stages * this.perStage(count)));
  }

  get group() { return this.stages; }

  /* Operations of a stage in a step of so many micro-batches. */
  perStage(microBatches) { return 2 * microBatches * this.about.chunks / this.stages; }

  laneText(lane) { return `stage ${lane % this.stages} of replica ${Math.floor(lane / this.stages)}`; }

  hasMeasured() { return false; }

  packsOf(k) {
    const list = [];
    for (let p = this.packs[this.microBatches[k]]; p < this.packs[this.microBatches[k + 1]]; p++) list.push(this.pack(p, false));
    return list;
  }

  read(k) {
    const c = this.columns, tick = this.about.tick_ns, first = this.microBatches[k], count = this.microBatches[k + 1] - first;
    const each = this.perStage(count), chunks = this.about.chunks, items = [], waits = [], stepEnd = c.step_ticks[k] * tick;
    let row = this.rows[k];
    for (let replica = 0; replica < this.replicas; replica++) {
      const made = new Map(), name = (direction, chunk, m) => (direction * chunks + chunk) * count + m, mine = [];
      for (let stage = 0; stage < this.stages; stage++) {
        let free = 0;
        for (let i = 0; i < each; i++, row++) {
          const chunk = c.operation_chunk[row], m = c.operation_micro_batch[row], direction = c.operation_direction[row];
          const start = free + c.operation_free[row] * tick, end = start + c.operation_ticks[row] * tick;
          const pack = this.pack(this.packs[first + m] + replica, false);
          const item = {...pack, lane: replica * this.stages + stage, lanes: 1, free, start, end, ns: end - start, chunk, microBatch: m, direction, name: `${direction ? 'backward' : 'forward'} ${m}`, colour: direction ? 'backward' : 'forward'};
          made.set(name(direction, chunk, m), item);
          mine.push(item);
          free = end;
        }
      }
      for (const item of mine) {
        items.push(item);
        if (item.start <= item.free) continue;
        const from = item.direction ? item.chunk < chunks - 1 && made.get(name(1, item.chunk + 1, item.microBatch)) : item.chunk > 0 && made.get(name(0, item.chunk - 1, item.microBatch));
        waits.push({lane: item.lane, lanes: 1, start: item.free, end: item.start, microBatch: item.microBatch,
          text: from && from.end > item.free ? `for ${from.name} on stage ${from.lane % this.stages}` : 'for a transfer between stages'});
      }
      const replicaEnd = mine.reduce((latest, item) => Math.max(latest, item.end), 0);
      for (let stage = 0; stage < this.stages; stage++) {
        const last = mine[(stage + 1) * each - 1];
        if (last && last.end < stepEnd)
          waits.push({lane: last.lane, lanes: 1, start: last.end, end: stepEnd, microBatch: null, text: replicaEnd < stepEnd ? 'for the slowest replica, which ends the step' : 'for the other stages to end the step'});
      }
    }
    const waited = waits.reduce((sum, w) => sum + w.end - w.start, 0);
    return {items, waits, tail: null, end: stepEnd, work: stepEnd, waited, idle: stepEnd > 0 ? waited / (stepEnd * this.ranks) : 0};
  }
}

/* One run of slices on lanes: a task schedule, a pipeline. */
class Slices extends Lanes {
  constructor(timeline, columns) {
    super();
    this.about = timeline;
    this.columns = columns;
    this.ranks = timeline.lanes;
    this.count = 1;
  }

  number() { return 0; }

  hasMeasured() { return false; }

  samples() { return []; }

  read() {
    const c = this.columns, items = [], waits = [];
    let end = 0, busy = 0;
    for (let i = 0; i < c.slice_lane.length; i++) {
      const label = this.about.labels[c.slice_label[i]];
      const item = {pack: i, lane: c.slice_lane[i], lanes: c.slice_lanes[i], start: c.slice_start[i], ns: c.slice_ns[i], end: c.slice_start[i] + c.slice_ns[i], name: label.name, colour: label.colour, about: label.about};
      items.push(item);
      end = Math.max(end, item.end);
      busy += item.ns * item.lanes;
    }
    const total = Math.max(end, this.about.total_ns || 0);
    const byLane = Array.from({length: this.ranks}, () => []);
    for (const item of items)
      for (let l = item.lane; l < item.lane + item.lanes; l++) byLane[l].push(item);
    for (let l = 0; l < this.ranks; l++) {
      let free = 0;
      for (const item of byLane[l].sort((a, b) => a.start - b.start)) {
        if (item.start > free) waits.push({lane: l, lanes: 1, start: free, end: item.start, microBatch: null, text: `before ${item.name}`});
        free = Math.max(free, item.end);
      }
      if (end > free) waits.push({lane: l, lanes: 1, start: free, end, microBatch: null, text: 'with nothing left to run'});
    }
    const tail = total > end ? {lane: 0, lanes: this.ranks, start: end, end: total} : null;
    return {items, waits, tail, end: total, work: end, waited: end * this.ranks - busy, idle: end > 0 ? 1 - busy / (end * this.ranks) : 0};
  }
}
