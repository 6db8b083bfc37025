'use strict';
/* What the pictures share: numbers as people read them, elements, figures with their data as a table. */

const count = (n) => Math.round(n).toLocaleString('en-US');
const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? '' : /ch$/.test(noun) ? 'es' : 's'}`;
const share = (x) => Number.isFinite(x) ? `${(100 * x).toFixed(2)} %` : '-';

function time(ns) {
  const units = [[86400e9, 'd', 3], [3600e9, 'h', 3], [60e9, 'min', 2], [1e9, 's', 2], [1e6, 'ms', 2], [1e3, 'us', 2]];
  for (const [size, name, digits] of units)
    if (ns >= size) return `${(ns / size).toFixed(digits)} ${name}`;
  return `${Math.round(ns)} ns`;
}

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (n >= 1024 && unit < 4) { n /= 1024; unit++; }
  return unit ? `${n.toFixed(1)} ${units[unit]}` : `${n} B`;
}

function tokens(n) {
  if (n >= 1 << 20 && n % (1 << 20) === 0) return `${n / (1 << 20)}M`;
  if (n >= 1024 && n % 1024 === 0) return `${n / 1024}K`;
  return count(n);
}

const formats = {ns: time, bytes, share, count, tokens};
const format = (unit, value) => value === null || value === undefined ? '-' : formats[unit](value);

/* Colours are of what is shown, the same in every picture: of tasks and directions by number, of SP degrees and of
 * lengths on a scale each, of all else by name (page.css). */
const scale = (of, share) => `color-mix(in oklch, var(--${of}-high) ${(100 * Math.min(1, share)).toFixed(1)}%, var(--${of}-low))`;
const colour = (of) => {
  if (typeof of === 'number') return `var(--c${of % 8})`;
  const [name, value] = of.split(' ');
  return name === 'sp' ? scale('sp', Math.log2(value) / 6) : name === 'length' ? scale('length', +value) : `var(--${name})`;
};
/* The same as an area: waiting is hatched, numbers from 8 on are striped. */
const paint = (of) => of === 'wait' ? 'url(#waiting)' : of >= 8 ? `url(#striped${of % 8})` : colour(of);
const swatch = (of) => of === 'wait' ? 'repeating-linear-gradient(45deg, var(--wait) 0 3px, var(--wait-line) 3px 5px)'
  : of >= 8 ? `repeating-linear-gradient(0deg, ${colour(of)} 0 3px, var(--page) 3px 5px)` : colour(of);

/* Elements: attributes by name, handlers by a function, children as nodes or texts. */
function element(space, name, attributes, children) {
  const node = space ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (typeof value === 'function') node.addEventListener(key, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? '' : value);
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}
const html = (name, attributes, ...children) => element(false, name, attributes, children);
const svg = (name, attributes, ...children) => element(true, name, attributes, children);

/* A text that keeps to `width` pixels, at some 6.6 of them a letter; '' where none fits. */
function fitted(text, width) {
  const most = Math.floor(width / 6.6);
  return text.length <= most ? text : most > 3 ? `${text.slice(0, most - 1)}…` : '';
}

/* Round numbers from 0 to `most`, about `wanted` of them. */
function ticks(most, wanted) {
  if (!(most > 0)) return [0];
  const rough = most / wanted, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough);
  const list = [];
  for (let v = 0; v <= most * 1.0001; v += step) list.push(v);
  return list;
}

/* Round times from 0 to `most` ns, in the unit that the largest is read in. */
function timeTicks(most, wanted) {
  const unit = [86400e9, 3600e9, 60e9, 1e9, 1e6, 1e3, 1].find((u) => most >= u) || 1;
  return ticks(most / unit, wanted).map((v) => v * unit);
}

function byteTicks(most, wanted) {
  const unit = [2 ** 40, 2 ** 30, 2 ** 20, 1024, 1].find((u) => most >= u) || 1;
  return ticks(most / unit, wanted).map((v) => v * unit);
}

const axisTicks = (unit, most, wanted) => unit === 'ns' ? timeTicks(most, wanted) : unit === 'bytes' ? byteTicks(most, wanted) : ticks(most, wanted);

function axisText(unit, value) {
  if (unit === 'share') return `${+(100 * value).toFixed(2)} %`;
  return value === 0 ? '0' : format(unit, value).replace(/\.0+(?= |$)/, '').replace(/(\.\d*?)0+(?= |$)/, '$1');
}

function table(head, rows) {
  const isText = head.map((name) => name.startsWith('<'));
  return html('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'data as a table'},
    html('table', {},
      html('thead', {}, html('tr', {}, ...head.map((name, i) => html('th', {scope: 'col', class: isText[i] && 'text'}, name.replace(/^</, ''))))),
      html('tbody', {}, ...rows.map((row) => html('tr', {}, ...row.map((cell, i) => html('td', {class: isText[i] && 'text'}, cell)))))));
}

const wants = new URLSearchParams(location.hash.slice(1)); /* #step=17, #tables */
let figures = 0;

/* A picture under its question, with its answer, a legend and a table. draw(width) returns the svg, rows() what
 * the table holds; redraw() is called again when the page's width changes. */
function figure(picture, {legend, draw, head, rows, controls, below}) {
  const id = `figure-${++figures}`;
  const stage = html('div', {});
  const data = html('details', {open: wants.has('tables'), toggle: () => fill()}, html('summary', {}, 'The data as a table'));
  const filled = html('div', {});
  data.append(filled);
  const fill = () => filled.replaceChildren(...(data.open ? [table(head, rows())] : []));
  const redraw = () => {
    const width = Math.max(280, stage.clientWidth || 900);
    const drawing = draw(width);
    drawing.setAttribute('aria-labelledby', `${id}-title ${id}-answer`);
    stage.replaceChildren(drawing);
    fill();
  };
  const node = html('figure', {id: picture.id, 'aria-labelledby': `${id}-title`},
    html('figcaption', {}, html('h2', {id: `${id}-title`}, picture.title), html('p', {id: `${id}-answer`}, picture.answer || '')),
    controls || null, stage,
    legend ? html('ul', {class: 'legend'}, ...legend.map(([name, fill]) => html('li', {}, html('i', {style: `background:${fill}`, 'aria-hidden': 'true'}), name))) : null,
    below || null,
    picture.note ? html('p', {class: 'note'}, picture.note) : null, data);
  if (picture.place) picture.place.replaceWith(node);
  else document.getElementById('pictures').append(node);
  let known = 0;
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (stage.clientWidth !== known) { known = stage.clientWidth; redraw(); }
  })).observe(stage);
  return {node, redraw, fill};
}
