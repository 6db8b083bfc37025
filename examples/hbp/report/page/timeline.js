/* A step as ranks over time: chosen by a slider, zoomed, each pack with what it holds. */

function drawTimeline(picture, columns) {
  const about = picture, isPlan = about.mode === 'plan', isStages = about.mode === 'stages';
  const steps = new {plan: PlanSteps, stages: StageSteps, slices: Slices}[about.mode](about, columns);
  const lane = about.lane;
  let at = 0, step = null, chosen = null, from = 0, to = 1, measured = false;
  let shown = [0, steps.ranks]; /* lanes */

  const degrees = isPlan ? steps.degrees() : [];
  const colourOf = (item) => isPlan ? item.samples ? colour(`sp ${item.sp}`) : 'var(--line)' : paint(item.colour);
  const nameOf = (item) => isPlan ? item.samples ? `SP ${item.sp} · ${plural(item.samples, 'sample')} · ${count(item.tokens)} tokens` : 'padding' : item.name;
  const waitOf = (item) => item.wait || step.waits.find((w) => w.lane >= item.lane && w.lane < item.lane + item.lanes && w.start === item.end);

  const summary = html('p', {}), panel = html('div', {class: 'details', role: 'status', 'aria-live': 'polite'});
  const slider = html('input', {type: 'range', min: 0, max: steps.count - 1, value: 0, 'aria-label': 'step', input: () => choose(+slider.value)});
  const box = html('input', {type: 'number', min: steps.number(0), max: steps.number(steps.count - 1), 'aria-label': 'number of the step', change: () => choose(nearest(+box.value))});
  const nearest = (number) => {
    let low = 0, high = steps.count - 1;
    while (low < high) { const m = (low + high) >> 1; if (steps.number(m) < number) low = m + 1; else high = m; }
    return low > 0 && number - steps.number(low - 1) < steps.number(low) - number ? low - 1 : low;
  };
  const button = (text, label, press) => html('button', {type: 'button', 'aria-label': label, title: label, click: press}, text);
  const named = (about.named || []).map((n) => button(n.name, `step ${n.step}: ${n.about}`, () => choose(nearest(n.step))));
  const which = html('select', {'aria-label': 'times', change: () => { measured = which.value === 'measured'; choose(at); }}, html('option', {value: 'predicted'}, 'predicted'), html('option', {value: 'measured'}, 'measured'));
  const group = steps.group, few = group * Math.max(1, Math.floor(64 / group)), noun = isStages ? 'replica' : lane;
  const part = html('select', {'aria-label': `${noun}s shown`, change: () => { shown = part.value === 'all' ? [0, steps.ranks] : [+part.value, Math.min(steps.ranks, +part.value + few)]; view.redraw(); }},
    html('option', {value: 'all'}, `all ${count(steps.ranks / group)}`), ...Array.from({length: Math.ceil(steps.ranks / few)}, (_, i) => html('option', {value: i * few}, `${i * few / group}-${Math.min(steps.ranks, (i + 1) * few) / group - 1}`)));
  const controls = html('div', {},
    steps.count > 1 ? html('div', {class: 'controls'}, html('label', {}, 'step ', box), button('‹', 'the step before', () => choose(at - 1)), slider, button('›', 'the next step', () => choose(at + 1)), ...named) : null,
    html('div', {class: 'controls'}, columns.pack_measured ? html('label', {}, 'times ', which) : null, steps.ranks > few ? html('label', {}, `${noun}s `, part) : null,
      button('+', 'zoom in', () => zoom(0.5)), button('−', 'zoom out', () => zoom(2)), button('whole step', 'show the whole step', () => { from = 0; to = 1; view.redraw(); }),
      html('span', {class: 'note'}, `keys: arrows choose a ${isPlan ? 'pack' : 'slice'}, + and - zoom, 0 shows all`)), summary);

  const timed = (p) => p ? `computation ${time(p.compute)}, all-to-all ${time(p.exchange)}, once a micro-batch ${time(p.once)}` : '';
  function describe(item) {
    if (!item) return [html('p', {class: 'note'}, isPlan ? 'Point at a pack, or choose one by the arrow keys, to see what it holds and whom it waits for.' : 'Point at a slice, or choose one by the arrow keys.')];
    const wait = waitOf(item);
    const place = ` on ${steps.laneText(item.lane, item.lanes)}`, waiting = wait ? html('p', {}, `then waits ${time(wait.end - wait.start)} ${wait.text}`) : null;
    if (about.mode === 'slices')
      return [html('p', {}, html('strong', {}, item.name), `${place}, ${time(item.start)} to ${time(item.end)}`), html('p', {}, item.about || ''), waiting];
    const list = steps.samples(item.pack), shown = list.slice(0, 60).map(([id, n]) => `${id} (${count(n)})`).join(', ');
    const held = list.length ? `samples, by number (tokens): ${shown}${list.length > 60 ? `, and ${count(list.length - 60)} more in the table` : ''}` : about.unlisted.replace('STEP', steps.number(at)).replace('RANK', isStages ? Math.floor(item.lane / group) : item.lane);
    if (isStages)
      return [
        html('p', {}, html('strong', {}, item.name), `${place}${about.chunks > group ? `, chunk ${item.chunk}` : ''}, ${time(item.start)} to ${time(item.end)}`),
        html('p', {}, `of ${plural(item.samples, 'sample')}, ${plural(item.tokens, 'token')}${columns.pack_vision ? `, ${plural(columns.pack_vision[item.pack], 'vision unit')}` : ''}`), waiting,
        html('p', {}, item.samples ? held : 'no samples: its stages take part without loss tokens')];
    return [
      html('p', {}, html('strong', {}, nameOf(item)), `${place}, micro-batch ${item.microBatch}; holds up to ${tokens(item.capacity)}${item.recompute ? `, ${plural(item.recompute, 'layer')} recomputed` : ''}`),
      html('p', {}, `${time(item.ns)}${item.parts && !measured ? `: ${timed(item.parts)}` : ''}; peak memory ${bytes(item.bytes)}${about.limit_bytes ? ` of ${bytes(about.limit_bytes)}` : ''}`),
      waiting || html('p', {}, 'waits for nobody'),
      html('p', {}, item.samples ? held : 'no samples: its ranks take part without loss tokens')];
  }

  function pick(item) {
    chosen = item;
    panel.replaceChildren(...describe(item).filter(Boolean));
    for (const node of view.node.querySelectorAll('.chosen')) node.classList.remove('chosen');
    const node = item && view.node.querySelector(`[data-item="${step.items.indexOf(item)}"]`);
    if (node) node.classList.add('chosen');
  }

  function choose(k) {
    at = Math.min(Math.max(0, k), steps.count - 1);
    if (!steps.hasMeasured(at)) measured = false;
    which.disabled = !steps.hasMeasured(at);
    which.value = measured ? 'measured' : 'predicted';
    step = steps.read(at, measured);
    slider.value = at;
    box.value = steps.number(at);
    slider.setAttribute('aria-valuetext', `step ${steps.number(at)}`);
    from = 0; to = 1;
    let worst = null;
    for (const w of step.waits) if (!worst || w.end - w.start > worst.end - worst.start) worst = w;
    const packs = isPlan ? step.items : isStages ? steps.packsOf(at) : [];
    const held = packs.length ? `Step ${steps.number(at)}: ${plural(packs.reduce((n, i) => n + i.samples, 0), 'sample')}, ${plural(packs.reduce((n, i) => n + i.tokens, 0), 'token')}, ` : '';
    summary.textContent = `${held}${time(step.end)}; ${lane}s wait ${share(step.idle)} of ${isStages ? 'it' : `the time ${isPlan ? 'in micro-batches' : `until the last ${lane === 'stage' ? 'operation' : 'slice'} ends`}`}`
      + (worst && worst.end > worst.start ? `; the longest wait: ${steps.laneText(worst.lane, worst.lanes)}, ${time(worst.end - worst.start)} ${worst.text}.` : '.');
    view.redraw();
    pick(null);
  }

  function zoom(by) {
    const middle = chosen ? (chosen.start + chosen.end) / 2 / step.end : (from + to) / 2, half = Math.min(0.5, (to - from) * by / 2);
    from = Math.max(0, Math.min(1 - 2 * half, middle - half));
    to = Math.min(1, from + 2 * half);
    view.redraw();
  }

  /* The item on a lane that is nearest to a time. */
  function find(l, ns) {
    let best = null, distance = Infinity;
    for (const item of step.items)
      if (l >= item.lane && l < item.lane + item.lanes) {
        const d = ns < item.start ? item.start - ns : ns > item.end ? ns - item.end : 0;
        if (d < distance) { best = item; distance = d; }
      }
    return best;
  }

  function key(event) {
    const item = chosen || step.items[0];
    const middle = (item.start + item.end) / 2;
    let next = null;
    if (event.key === '+' || event.key === '=') zoom(0.5);
    else if (event.key === '-') zoom(2);
    else if (event.key === '0') { from = 0; to = 1; view.redraw(); }
    else if (event.key === 'PageDown') choose(at + 1);
    else if (event.key === 'PageUp') choose(at - 1);
    else if (event.key === 'ArrowRight') next = step.items.find((i) => i.start >= item.end && item.lane >= i.lane && item.lane < i.lane + i.lanes) || item;
    else if (event.key === 'ArrowLeft') next = step.items.slice().reverse().find((i) => i.end <= item.start && item.lane >= i.lane && item.lane < i.lane + i.lanes) || item;
    else if (event.key === 'ArrowDown') next = find(Math.min(steps.ranks - 1, item.lane + item.lanes), middle) || item;
    else if (event.key === 'ArrowUp') next = find(Math.max(0, item.lane - 1), middle) || item;
    else return;
    event.preventDefault();
    if (next) {
      pick(chosen ? next : step.items[0]);
      if (next.end / step.end < from || next.start / step.end > to) zoom(1);
    }
  }

  function draw(width) {
    const lanes = shown[1] - shown[0], x0 = isStages ? 110 : 64, inner = width - x0 - 4, top = 24, row = lanes > 96 ? 480 / lanes : Math.min(40, Math.max(5, 480 / lanes)), end = step.end || 1;
    const x = (ns) => x0 + inner * (ns / end - from) / (to - from), y = (l) => top + (Math.min(shown[1], Math.max(shown[0], l)) - shown[0]) * row;
    const clip = (a, b) => [Math.max(x0, x(a)), Math.min(x0 + inner, x(b))];
    const tall = (w) => y(w.lane + w.lanes) - y(w.lane);
    const rect = (w, attributes, ...inside) => {
      const [a, b] = clip(w.start, w.end);
      return b > a && tall(w) > 0 ? svg('rect', {x: a.toFixed(2), width: Math.max(0.5, b - a).toFixed(2), y: y(w.lane).toFixed(2), height: tall(w).toFixed(2), ...attributes}, ...inside) : null;
    };
    const parts = [hatch()];
    for (const v of timeTicks(end * (to - from), 6).map((t) => t + end * from))
      parts.push(svg('line', {class: 'axis', x1: x(v), x2: x(v), y1: 18, y2: y(shown[1])}), svg('text', {x: x(v), y: 12, 'text-anchor': 'middle', class: 'soft'}, axisText('ns', v)));
    const each = 2 ** Math.max(0, Math.ceil(Math.log2(14 / row)));
    if (isStages)
      for (let l = shown[0], free = 0; l < shown[1]; l += group) {
        if (l > shown[0]) parts.push(svg('line', {class: 'axis', x1: 0, x2: x0 + inner, y1: y(l), y2: y(l)}));
        if (row >= 13)
          for (let s = 0; s < group; s++) parts.push(svg('text', {x: x0 - 6, y: y(l + s) + 12, 'text-anchor': 'end', class: 'soft'}, `${s ? '' : `replica ${l / group}, stage `}${s}`));
        else if (y(l) >= free) { parts.push(svg('text', {x: x0 - 6, y: y(l) + Math.min(row * group, 14) - 2, 'text-anchor': 'end', class: 'soft'}, `replica ${l / group}`)); free = y(l) + 13; }
      }
    else
      for (let l = shown[0]; l < shown[1]; l += each) parts.push(svg('text', {x: x0 - 6, y: y(l) + Math.min(row * each, 14) - 2, 'text-anchor': 'end', class: 'soft'}, `${l === shown[0] ? `${lane} ` : ''}${l}`));
    for (const w of step.waits) parts.push(rect(w, {fill: 'url(#waiting)'}, svg('title', {}, `${steps.laneText(w.lane, w.lanes)}: waits ${time(w.end - w.start)} ${w.text}`)));
    if (step.tail) parts.push(rect(step.tail, {fill: colour('step')}, svg('title', {}, `once a step: ${time(step.tail.end - step.tail.start)}`)));
    step.items.forEach((item, i) => {
      const [a, b] = clip(item.start, item.end);
      if (!(b > a) || !(tall(item) > 0)) return;
      parts.push(rect(item, {class: `pack${item === chosen ? ' chosen' : ''}${tall(item) < 4 ? ' thin' : ''}`, fill: colourOf(item), 'data-item': i, mouseenter: () => pick(item), click: () => pick(item)}, svg('title', {}, nameOf(item))));
      if (item.parts && !measured) {
        const once = {lane: item.lane, lanes: item.lanes, start: item.end - item.parts.once, end: item.end};
        parts.push(rect(once, {class: 'once'}), item.parts.exchange > 0 ? rect({...once, start: once.start - item.parts.exchange, end: once.start}, {class: 'exchange'}) : null);
      }
      const name = nameOf(item), short = isStages && 6.6 * name.length > b - a - 8 ? `${name[0].toUpperCase()}${item.microBatch}` : name;
      const text = tall(item) >= 13 ? fitted(short, b - a - 8) : '';
      if (text) parts.push(svg('text', {x: a + 4, y: y(item.lane) + tall(item) / 2 + 4, class: 'on'}, text));
    });
    return svg('svg', {role: 'application', tabindex: 0, height: y(shown[1]) + 6, keydown: key, focus: () => chosen || pick(step.items[0] || null), 'aria-roledescription': 'timeline'}, ...parts.filter(Boolean));
  }

  const legend = [...(isPlan ? degrees.map((d) => [`SP ${d}`, colour(`sp ${d}`)]) : isStages ? [['forward (F)', colour('forward')], ['backward (B)', colour('backward')]] : about.legend.map((l) => [l.name, swatch(l.colour)])),
    ['waiting', swatch('wait')]];
  if (isPlan && about.terms) legend.push(['all-to-all', colour('exchange')], ['once a micro-batch: ZeRO traffic not hidden, launches', colour('once')]);
  if (isPlan) legend.push(['once a step', colour('step')]);
  const view = figure(picture, {
    legend, draw, controls, below: panel,
    head: isPlan ? ['<micro-batch', `${lane}s`, 'SP', 'recomputed layers', 'samples', 'tokens', 'starts', 'time', 'all-to-all', 'once a micro-batch', 'waits', 'peak memory', '<samples: number (tokens)']
      : isStages ? ['<operation', 'replica', 'stage', 'chunk', 'starts', 'time', 'waits before', 'samples', 'tokens', 'vision units'] : ['<slice', `${lane}s`, 'starts', 'time', '<about'],
    rows: () => !step ? [] : isPlan ? step.items.map((i) => [String(i.microBatch), i.lanes > 1 ? `${i.lane}-${i.lane + i.lanes - 1}` : String(i.lane), String(i.sp), String(i.recompute), count(i.samples), count(i.tokens), time(i.start), time(i.ns), i.parts ? time(i.parts.exchange) : '-', i.parts ? time(i.parts.once) : '-', i.wait ? time(i.wait.end - i.wait.start) : '-', bytes(i.bytes), steps.samples(i.pack).map(([id, n]) => `${id} (${count(n)})`).join(', ')])
      : isStages ? step.items.map((i) => [i.name, String(Math.floor(i.lane / group)), String(i.lane % group), String(i.chunk), time(i.start), time(i.ns), time(i.start - i.free), count(i.samples), count(i.tokens), columns.pack_vision ? count(columns.pack_vision[i.pack]) : '-'])
      : step.items.map((i) => [i.name, i.lanes > 1 ? `${i.lane}-${i.lane + i.lanes - 1}` : String(i.lane), time(i.start), time(i.ns), i.about || '']),
  });
  step = steps.read(0, false);
  choose(wants.has('step') ? nearest(+wants.get('step')) : about.shown ? nearest(about.shown) : 0);
}
