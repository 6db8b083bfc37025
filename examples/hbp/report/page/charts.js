/* Pictures of numbers: bars, columns in panels, points. */

/* A question that words answer. */
function drawText(picture) {
  document.getElementById('pictures').append(html('section', {id: picture.id, 'aria-labelledby': `${picture.id}-title`}, html('h2', {id: `${picture.id}-title`}, picture.title), html('p', {}, picture.answer)));
}

/* A few rows, each a bar with its number behind it; a limit is a line. */
function drawBars(picture) {
  const rows = picture.rows, unit = picture.unit;
  const marked = rows.find((r) => r.mark), longest = Math.max(...rows.map((r) => r.value || 0), picture.limit ? picture.limit.value : 0) || 1;
  /* What takes many times as long would make all others look the same: its bar is cut off, and says so. */
  const most = marked && unit === 'ns' ? Math.min(longest, Math.max(1.6 * marked.value, picture.limit ? picture.limit.value : 0)) : longest;
  figure(picture, {
    head: ['<', picture.value_name || 'value'],
    rows: () => rows.map((r) => [r.label, r.value === null ? r.text || '-' : format(unit, r.value)]),
    draw: (width) => {
      const texts = rows.map((r) => r.value === null ? r.text || '-' : `${format(unit, r.value)}${r.text ? ` · ${r.text}` : ''}`);
      const label = Math.min(width * 0.42, 12 + 6.8 * Math.max(...rows.map((r) => r.label.length)));
      const tail = Math.min(width * 0.4, 14 + 6.8 * Math.max(...texts.map((t) => t.length))), height = 24;
      const x = (v) => label + (width - label - tail) * v / most;
      const top = picture.limit ? 20 : 0;
      const parts = rows.map((r, i) => {
        const y = top + i * height;
        const text = texts[i], end = r.value === null ? label : x(Math.min(r.value, most));
        return svg('g', {}, svg('title', {}, `${r.label}: ${text}`),
          svg('text', {x: label - 8, y: y + 16, 'text-anchor': 'end', 'font-weight': r.mark ? 'bold' : null}, fitted(r.label, label - 8)),
          r.value === null ? null : svg('rect', {x: label, y: y + 4, width: Math.max(1, x(Math.min(r.value, most)) - label), height: height - 8, fill: colour(r.colour || (r.mark ? 'mark' : 'plain'))}),
          r.value > most ? svg('path', {d: `M${end - 10},${y + 4}l4,${(height - 8) / 2}l-4,${(height - 8) / 2}`, stroke: 'var(--page)', 'stroke-width': 3, fill: 'none'}) : null,
          svg('text', {x: end + 6, y: y + 16, class: `halo${r.value === null ? ' soft' : ''}`}, fitted(text, width - end - 6)));
      });
      const line = picture.limit ? svg('g', {},
        svg('line', {class: 'limit', x1: x(picture.limit.value), x2: x(picture.limit.value), y1: 16, y2: top + rows.length * height}),
        svg('text', {class: 'limit', x: x(picture.limit.value), y: 12, 'text-anchor': 'end'}, `${picture.limit.label} ${format(unit, picture.limit.value)}`)) : null;
      return svg('svg', {role: 'img', height: top + rows.length * height + 4}, line, ...parts);
    },
  });
}

/* One panel: stacked columns from `y` on, `height` high, with its limit. */
function drawPanel(panel, names, box) {
  const n = names.length, {x0, width, y, height} = box;
  const sums = names.map((_, i) => panel.series.reduce((sum, s) => sum + (s.values[i] || 0), 0));
  const most = Math.max(...sums, panel.limit ? panel.limit.value * 1.04 : 0) || 1;
  const px = (i) => x0 + width * i / n, py = (v) => y + height - height * v / most;
  const parts = [svg('text', {x: x0, y: y - 6, class: 'soft'}, panel.label)];
  for (const v of axisTicks(panel.unit, most, 4))
    parts.push(svg('line', {class: 'axis', x1: x0, x2: x0 + width, y1: py(v), y2: py(v)}),
      svg('text', {x: x0 - 6, y: py(v) + 4, 'text-anchor': 'end', class: 'soft'}, axisText(panel.unit, v)));
  for (let i = 0; i < n; i++) {
    let below = 0;
    const lines = [names[i]];
    const column = svg('g', {});
    for (const s of panel.series) {
      const v = s.values[i] || 0;
      if (v > 0) {
        column.append(svg('rect', {x: px(i) + (width / n > 4 ? 0.5 : 0), width: Math.max(0.5, width / n - (width / n > 4 ? 1 : 0)), y: py(below + v), height: Math.max(0.3, py(below) - py(below + v)), fill: paint(s.colour)}));
        lines.push(`${s.label}: ${format(panel.unit, v)}`);
      }
      below += v;
    }
    column.prepend(svg('title', {}, lines.join('\n')));
    if (column.childNodes.length === 1) column.append(svg('rect', {x: px(i), width: width / n, y, height, fill: 'transparent'}));
    parts.push(column);
  }
  if (panel.limit)
    parts.push(svg('line', {class: 'limit', x1: x0, x2: x0 + width, y1: py(panel.limit.value), y2: py(panel.limit.value)}),
      svg('text', {class: 'limit', x: x0 + width, y: py(panel.limit.value) - 4, 'text-anchor': 'end'}, `${panel.limit.label} ${format(panel.unit, panel.limit.value)}`));
  return parts;
}

const hatch = () => svg('defs', {}, svg('pattern', {id: 'waiting', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)'},
  svg('rect', {width: 6, height: 6, fill: 'var(--wait)'}), svg('line', {x1: 0, x2: 0, y1: 0, y2: 6, stroke: 'var(--wait-line)', 'stroke-width': 2})),
  ...[0, 1, 2, 3, 4, 5, 6, 7].map((i) => svg('pattern', {id: `striped${i}`, width: 5, height: 5, patternUnits: 'userSpaceOnUse'},
    svg('rect', {width: 5, height: 5, fill: colour(i)}), svg('line', {x1: 0, x2: 5, y1: 4, y2: 4, stroke: 'var(--page)', 'stroke-width': 1.5}))));

/* Panels of stacked columns over one axis, whose names are the table's first column; borders are lines through
 * all of them, at places between columns. */
function drawColumns(picture) {
  const names = picture.names, all = picture.panels.flatMap((p) => p.series.map((s) => ({...s, unit: p.unit, panel: p.label})));
  const coloured = new Map();
  for (const p of picture.panels.filter((q) => q.series.length > 1)) for (const s of p.series) coloured.set(s.label, swatch(s.colour));
  figure(picture, {
    legend: coloured.size > 1 ? [...coloured] : null,
    head: [`<${picture.axis}`, ...all.map((s) => picture.panels.length > 1 && s.label !== s.panel ? `${s.panel}: ${s.label}` : s.label)],
    rows: () => names.map((name, i) => [name, ...all.map((s) => format(s.unit, s.values[i]))]),
    draw: (width) => {
      const x0 = 70, inner = width - x0 - 8, high = picture.panels.length > 1 ? 110 : 170, gap = 34;
      const parts = [hatch()];
      let y = 24;
      for (const panel of picture.panels) {
        parts.push(...drawPanel(panel, names, {x0, width: inner, y, height: high}));
        y += high + gap;
      }
      const bottom = y - gap;
      const free = [-1e9, -1e9]; /* labels of borders stand in two lines */
      for (const b of picture.borders || []) {
        const x = x0 + inner * b.at / names.length, text = fitted(b.label, 260);
        parts.push(svg('line', {class: 'border', x1: x, x2: x, y1: 22, y2: bottom}));
        const length = 6.8 * text.length, at = Math.min(x, x0 + inner - length);
        const line = free.findIndex((f) => at >= f + 8);
        if (line < 0) continue;
        parts.push(svg('text', {x: at, y: bottom + 30 + 15 * line}, text));
        free[line] = at + length;
      }
      const each = Math.max(1, Math.ceil(names.length * (18 + 7 * Math.max(...names.map((s) => s.length))) / inner));
      for (let i = (picture.first_name || 0) % each; i < names.length; i += each)
        parts.push(svg('text', {x: x0 + inner * (i + 0.5) / names.length, y: bottom + 14, 'text-anchor': 'middle', class: 'soft'}, names[i]));
      return svg('svg', {role: 'img', height: bottom + ((picture.borders || []).length ? free[1] > 0 ? 55 : 40 : 22)}, ...parts);
    },
  });
}

/* Points of two numbers of one unit, with the diagonal on which both are equal. */
function drawPoints(picture) {
  const points = picture.points, most = Math.max(...points.map((p) => Math.max(p[0], p[1])), 1);
  figure(picture, {
    head: ['<pack', picture.x, picture.y, 'difference'],
    rows: () => points.map((p) => [p[2], format(picture.unit, p[0]), format(picture.unit, p[1]), share(p[1] / p[0] - 1)]),
    draw: (width) => {
      const side = Math.min(width - 90, 420), x0 = 80, y0 = 12;
      const x = (v) => x0 + side * v / most, y = (v) => y0 + side - side * v / most;
      const parts = [svg('line', {class: 'border', x1: x(0), y1: y(0), x2: x(most), y2: y(most)})];
      for (const v of axisTicks(picture.unit, most, 5))
        parts.push(svg('line', {class: 'axis', x1: x0, x2: x0 + side, y1: y(v), y2: y(v)}),
          svg('text', {x: x0 - 6, y: y(v) + 4, 'text-anchor': 'end', class: 'soft'}, axisText(picture.unit, v)),
          svg('text', {x: x(v), y: y0 + side + 16, 'text-anchor': 'middle', class: 'soft'}, axisText(picture.unit, v)));
      for (const p of points)
        parts.push(svg('circle', {class: 'dot', cx: x(p[0]), cy: y(p[1]), r: 3}, svg('title', {}, `${p[2]}: ${picture.x} ${format(picture.unit, p[0])}, ${picture.y} ${format(picture.unit, p[1])}`)));
      parts.push(svg('text', {x: x0 + side, y: y0 + side + 34, 'text-anchor': 'end'}, picture.x), svg('text', {x: 4, y: y0 + 6}, picture.y));
      return svg('svg', {role: 'img', height: side + 52}, ...parts);
    },
  });
}
