// The two plots of the README, as SVG. Both axes of figures are logarithmic: what counts are ratios.

const WIDTH = 760;
const HEIGHT = 390;
const AREA = { left: 84, top: 78, right: 736, bottom: 326 };
/** For light pages and dark ones, as the reader's system is set; elsewhere the light one with a ground of its own is legible. */
const LIGHT = { text: '#1f2328', quiet: '#59636e', grid: '#d1d9e0', ground: '#ffffff', series: ['#0969da', '#cf222e', '#9a6700', '#6e7781'] };
const DARK = { text: '#f0f6fc', quiet: '#9198a1', grid: '#3d444d', ground: '#0d1117', series: ['#4493f8', '#ff7b72', '#d29922', '#9198a1'] };

const colours = ({ text, quiet, grid, ground, series }) =>
  [
    `text{fill:${text}}.quiet{fill:${quiet}}.ground{fill:${ground}}.grid{stroke:${grid}}.axis{stroke:${quiet}}`,
    ...series.map((colour, i) => `.fill${i}{fill:${colour}}.stroke${i}{stroke:${colour}}`),
  ].join('');
const STYLE = `<style>${colours(LIGHT)}.curve{fill:none;stroke-width:2.5}@media (prefers-color-scheme:dark){${colours(DARK)}}</style>`;

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);
const text = (x, y, content, more = '') => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(content)}</text>`;
const middle = 'text-anchor="middle"';
const line = (x1, y1, x2, y2, kind) =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" class="${kind}"/>`;

function frame(title, [across, up], inside) {
  const height = (AREA.top + AREA.bottom) / 2;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    STYLE,
    `<rect class="ground" width="${WIDTH}" height="${HEIGHT}" rx="6"/>`,
    text(AREA.left, 28, title, 'font-size="15" font-weight="600"'),
    ...inside,
    line(AREA.left, AREA.bottom, AREA.right, AREA.bottom, 'axis'),
    text((AREA.left + AREA.right) / 2, HEIGHT - 20, across, `${middle} class="quiet"`),
    text(22, height, up, `${middle} class="quiet" transform="rotate(-90 22 ${height})"`),
    '</svg>\n',
  ].join('\n');
}

/** 1, 2, 5, 10, 20 … from the last one below `least` to the first above `most`. */
export function ticks(least, most) {
  const steps = [1, 2, 5];
  const all = [];
  for (let power = Math.floor(Math.log10(least)) - 1; 10 ** power <= most * 10; power++) {
    all.push(...steps.map((step) => Number((step * 10 ** power).toPrecision(6))));
  }
  return all.slice(all.findLastIndex((tick) => tick <= least), all.findIndex((tick) => tick >= most) + 1);
}

/** The height of a figure, and the lines and their labels. A figure below what can be told apart stands on the ground line. */
function heights(figures) {
  const told = figures.filter((figure) => figure > 0);
  const marks = ticks(Math.min(...told), Math.max(...told) * 1.05);
  const [least, most] = [marks[0], marks.at(-1)];
  const share = (figure) => Math.log(Math.max(figure, least) / least) / Math.log(most / least);
  const y = (figure) => AREA.bottom - share(figure) * (AREA.bottom - AREA.top);
  const lines = marks.flatMap((mark) => [
    line(AREA.left, y(mark), AREA.right, y(mark), 'grid'),
    text(AREA.left - 8, y(mark) + 4, mark.toLocaleString('en', { maximumSignificantDigits: 6 }), 'text-anchor="end"'),
  ]);
  return { y, lines };
}

/** A sign of its own for each series, so that colours are not all that tells them apart. */
const SIGNS = [
  (x, y, kind) => `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="4.5" class="${kind}"/>`,
  (x, y, kind) => `<path d="M${x.toFixed(1)} ${(y - 5.5).toFixed(1)}l5.5 5.5l-5.5 5.5l-5.5-5.5z" class="${kind}"/>`,
  (x, y, kind) => `<path d="M${x.toFixed(1)} ${(y - 5.5).toFixed(1)}l5.5 9.5h-11z" class="${kind}"/>`,
  (x, y, kind) => `<path d="M${(x - 4).toFixed(1)} ${(y - 4).toFixed(1)}h8v8h-8z" class="${kind}"/>`,
];
const sign = (which, x, y) => SIGNS[which % SIGNS.length](x, y, `fill${which % SIGNS.length}`);

function legend(names) {
  let x = AREA.left + 6;
  return names.flatMap((name, which) => {
    const at = x;
    x += 44 + name.length * 7;
    return [sign(which, at, 51), text(at + 12, 55, name)];
  });
}

/** Operations per second over operations in flight: `{ title, inFlight: [1, …], series: { name: [ops/s, …] } }`. */
export function throughputPlot({ title, inFlight, series }) {
  const names = Object.keys(series);
  const { y, lines } = heights(Object.values(series).flat());
  const [first, last] = [Math.min(...inFlight), Math.max(...inFlight)];
  const x = (count) => AREA.left + 24 + (Math.log(count / first) / (Math.log(last / first) || 1)) * (AREA.right - AREA.left - 48);
  const curves = names.flatMap((name, which) => {
    const points = series[name].map((value, i) => [x(inFlight[i]), y(value)]);
    const course = points.map((point) => point.map((place) => place.toFixed(1)).join(',')).join(' ');
    return [`<polyline points="${course}" class="curve stroke${which % SIGNS.length}"/>`, ...points.map(([cx, cy]) => sign(which, cx, cy))];
  });
  return frame(title, ['operations in flight', 'operations per second'], [
    ...lines,
    ...inFlight.flatMap((count) => [
      line(x(count), AREA.bottom, x(count), AREA.bottom + 5, 'axis'),
      text(x(count), AREA.bottom + 20, count.toLocaleString('en'), middle),
    ]),
    // Ours lies on top.
    ...curves.reverse(),
    ...legend(names),
  ]);
}

/** How long others wait meanwhile: `{ title, unit, beside: [{ name, p99, p999, worst }] }`. */
export function waitsPlot({ title, unit, beside }) {
  const kinds = { p99: 'p99', p999: 'p99.9', worst: 'the longest' };
  const { y, lines } = heights(beside.flatMap((one) => Object.keys(kinds).map((kind) => one[kind])));
  const group = (AREA.right - AREA.left) / beside.length;
  const shown = (wait) => (wait < 1 ? wait.toFixed(2) : wait.toFixed(1));
  const columns = beside.flatMap((one, which) => {
    const x = AREA.left + (which + 0.5) * group;
    const waits = Object.keys(kinds).map((kind) => one[kind]);
    // Labels of waits that lie close stand above each other.
    let free = Infinity;
    const labels = waits.map((wait) => {
      const place = Math.min(y(wait) + 4, free);
      free = place - 13;
      return text(x + 12, place, shown(wait), 'font-size="11"');
    });
    return [
      line(x, y(waits[0]), x, y(waits.at(-1)), 'axis'),
      ...waits.map((wait, kind) => sign(kind, x, y(wait))),
      ...labels,
      text(x, AREA.bottom + 20, one.name, middle),
    ];
  });
  return frame(title, ['what goes on meanwhile', `wait of one PING, ${unit}`], [...lines, ...columns, ...legend(Object.values(kinds))]);
}
