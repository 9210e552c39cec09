// The two plots of the README, as SVG.

const WIDTH = 720;
const HEIGHT = 360;
const AREA = { left: 70, top: 50, right: 700, bottom: 300 };
const COLOURS = ['#1f6feb', '#d1242f', '#9a6700', '#57606a'];

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);
const text = (x, y, content, more = '') => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${more}>${escaped(content)}</text>`;
const line = (x1, y1, x2, y2) =>
  `<line x1="${x1.toFixed(1)}" y1="${y1.toFixed(1)}" x2="${x2.toFixed(1)}" y2="${y2.toFixed(1)}" stroke="#d0d7de"/>`;

function frame(title, inside) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" fill="#24292f">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(WIDTH / 2, 24, title, 'text-anchor="middle" font-size="15"'),
    ...inside,
    '</svg>\n',
  ].join('\n');
}

/** Round figures from nothing to `most`, about five of them. */
function ticks(most) {
  const rough = (most || 1) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= rough);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
}

function legend(names) {
  return names.flatMap((name, i) => {
    const x = AREA.left + i * 160;
    return [`<rect x="${x}" y="${HEIGHT - 24}" width="12" height="12" fill="${COLOURS[i % COLOURS.length]}"/>`, text(x + 18, HEIGHT - 14, name)];
  });
}

function scale(values) {
  const marks = ticks(Math.max(...values));
  const y = (value) => AREA.bottom - (value / marks.at(-1)) * (AREA.bottom - AREA.top);
  const lines = marks.flatMap((mark) => [
    line(AREA.left, y(mark), AREA.right, y(mark)),
    text(AREA.left - 8, y(mark) + 4, mark >= 1_000 ? `${mark / 1_000}k` : mark, 'text-anchor="end"'),
  ]);
  return { y, lines };
}

/** Operations per second over operations in flight: `{ title, inFlight: [1, …], series: { name: [ops/s, …] } }`. */
export function throughputPlot({ title, inFlight, series }) {
  const names = Object.keys(series);
  const { y, lines } = scale(Object.values(series).flat());
  const x = (i) => AREA.left + 20 + (i * (AREA.right - AREA.left - 40)) / Math.max(1, inFlight.length - 1);
  const curves = names.flatMap((name, which) => {
    const colour = COLOURS[which % COLOURS.length];
    const points = series[name].map((value, i) => [x(i).toFixed(1), y(value).toFixed(1)]);
    return [
      `<polyline points="${points.map((point) => point.join(',')).join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...points.map(([cx, cy]) => `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`),
    ];
  });
  return frame(title, [
    ...lines,
    ...inFlight.map((count, i) => text(x(i), AREA.bottom + 18, count.toLocaleString('en'), 'text-anchor="middle"')),
    text((AREA.left + AREA.right) / 2, AREA.bottom + 34, 'operations in flight', 'text-anchor="middle"'),
    text(8, AREA.top - 12, 'operations per second'),
    ...curves,
    ...legend(names),
  ]);
}

/** How long others wait meanwhile: `{ title, unit, beside: [{ name, p99, p999, worst }] }`. */
export function waitsPlot({ title, unit, beside }) {
  const kinds = { p99: 'p99', p999: 'p99.9', worst: 'worst' };
  const { y, lines } = scale(beside.flatMap((one) => Object.keys(kinds).map((kind) => one[kind])));
  const group = (AREA.right - AREA.left) / beside.length;
  const bar = (group * 0.75) / 3;
  const bars = beside.flatMap((one, which) => {
    const left = AREA.left + which * group + group * 0.125;
    return [
      text(left + bar * 1.5, AREA.bottom + 18, one.name, 'text-anchor="middle"'),
      ...Object.keys(kinds).flatMap((kind, i) => {
        const top = y(one[kind]);
        return [
          `<rect x="${(left + i * bar).toFixed(1)}" y="${top.toFixed(1)}" width="${(bar - 2).toFixed(1)}" height="${(AREA.bottom - top).toFixed(1)}" fill="${COLOURS[i]}"/>`,
          text(left + (i + 0.5) * bar, top - 4, one[kind].toFixed(1), 'text-anchor="middle" font-size="10"'),
        ];
      }),
    ];
  });
  return frame(title, [...lines, text(8, AREA.top - 12, unit), ...bars, ...legend(Object.values(kinds))]);
}
