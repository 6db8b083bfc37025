/* The page: what was asked, facts, pictures. Failures are said on it. */

function fail(error) {
  document.body.dataset.failed = String(error && error.message || error);
  document.getElementById('pictures').prepend(html('p', {class: 'error', role: 'alert'}, `This picture cannot be drawn: ${document.body.dataset.failed}`));
}
addEventListener('error', (event) => fail(event.error || event.message));
addEventListener('unhandledrejection', (event) => fail(event.reason));

(async () => {
  const report = JSON.parse(document.getElementById('report').textContent);
  document.body.classList.toggle('all', wants.has('tables'));
  document.title = `${report.title} - hbp report`;
  document.getElementById('title').textContent = report.title;
  const lead = document.getElementById('lead');
  for (const text of report.lead) lead.append(html('p', {}, text));
  if (report.note) lead.append(html('p', {class: 'note'}, 'Made by ', html('code', {}, report.note)));
  lead.append(html('dl', {class: 'facts'}, ...report.facts.map(([name, value]) => html('div', {}, html('dt', {}, name), html('dd', {}, value)))));
  document.getElementById('footer').textContent = report.footer;
  const terms = document.getElementById('terms');
  terms.hidden = !report.terms.length;
  terms.append(html('dl', {class: 'terms'}, ...report.terms.map(([term, meaning]) => html('div', {}, html('dt', {}, term), html('dd', {}, meaning)))));
  const types = {text: drawText, bars: drawBars, columns: drawColumns, points: drawPoints, timeline: drawTimeline};
  const draw = (picture, columns) => {
    try { types[picture.type](picture, columns); } catch (error) { fail(error); }
  };
  const late = report.pictures.filter((p) => p.type === 'timeline');
  for (const picture of report.pictures)
    if (late.includes(picture)) {
      picture.place = html('p', {class: 'note'}, 'reading the steps');
      document.getElementById('pictures').append(picture.place);
    } else draw(picture);
  const columns = await readColumns(report.columns);
  for (const picture of late) draw(picture, columns);
  document.body.dataset.drawn = report.pictures.length;
})().catch(fail);
