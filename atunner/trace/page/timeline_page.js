// Draws the tracks on a canvas. Each row holds events that do not overlap, ordered by start, so a
// frame costs a binary search for each pixel with small events, however many events there are.
(function () {
  'use strict';
  const meta = JSON.parse(document.getElementById('meta').textContent);
  function bytes(id) {
    const text = atob(document.getElementById(id).textContent);
    const out = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) out[i] = text.charCodeAt(i);
    return out.buffer;
  }
  const start = new Float64Array(bytes('start'));
  const duration = new Float32Array(bytes('duration'));
  const name = new Uint32Array(bytes('name'));
  const sum = new Float64Array(start.length + 1);  // of durations, over all rows
  for (let i = 0; i < start.length; ++i) sum[i + 1] = sum[i] + duration[i];

  const ROW = 15, HEAD = 24, LABEL = 190, GAP = 6;
  const canvas = document.getElementById('tracks'), tip = document.getElementById('tip');
  const search = document.getElementById('search'), found = document.getElementById('found');
  const g = canvas.getContext('2d');
  let y = HEAD;
  for (const track of meta.tracks) {
    track.y = y;
    y += track.rows.length * ROW + GAP;
  }
  const height = y + 4;
  let from = 0, to = meta.length, wanted = '', matches = null, pending = false;

  function color(variable) {
    return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  }
  function width() { return canvas.clientWidth; }
  function scale() { return (width() - LABEL) / (to - from); }
  function time(ns) {
    const a = Math.abs(ns);
    if (a < 1e3) return ns.toFixed(0) + ' ns';
    if (a < 1e6) return (ns / 1e3).toFixed(2) + ' µs';
    if (a < 1e9) return (ns / 1e6).toFixed(3) + ' ms';
    return (ns / 1e9).toFixed(4) + ' s';
  }
  // The first event of [low, high) that starts at or after t.
  function lower(t, low, high) {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (start[middle] < t) low = middle + 1; else high = middle;
    }
    return low;
  }
  function dimmed(id) { return matches !== null && !matches[id]; }

  function drawRow(row, top, s) {
    const begin = row[0], end = row[1];
    let i = lower(from, begin, end);
    if (i > begin) --i;
    while (i < end && start[i] < to) {
      const x = LABEL + (start[i] - from) * s, w = duration[i] * s;
      if (x + w < LABEL) { ++i; continue; }
      if (w >= 1) {
        const left = Math.max(LABEL, x), w2 = Math.min(x + w, width()) - left;
        g.globalAlpha = dimmed(name[i]) ? 0.15 : 1;
        g.fillStyle = meta.colors[meta.nameColors[name[i]]];
        g.fillRect(left, top, Math.max(1, w2 - (w2 > 3 ? 0.5 : 0)), ROW - 2);
        if (w2 > 34) {
          g.fillStyle = '#fff';
          const text = meta.names[name[i]], fits = Math.floor((w2 - 6) / 5.7);
          g.fillText(text.length > fits ? text.slice(0, Math.max(1, fits - 1)) + '…' : text,
                     left + 3, top + ROW - 5);
        }
        ++i;
      } else {  // all events of this pixel become one, as strong as they fill it
        const pixel = Math.max(LABEL, Math.floor(x));
        const until = from + (pixel + 1 - LABEL) / s;
        const next = Math.max(i + 1, lower(until, i, end));
        const filled = Math.min(1, (sum[next] - sum[i]) * s);
        g.globalAlpha = (dimmed(name[i]) ? 0.15 : 1) * (0.25 + 0.75 * filled);
        g.fillStyle = meta.colors[meta.nameColors[name[i]]];
        g.fillRect(pixel, top, 1, ROW - 2);
        i = next;
      }
    }
    g.globalAlpha = 1;
  }

  function drawAxis(s) {
    const steps = [1, 2, 5];
    let step = 1, k = 0;
    while (step * s < 110) { ++k; step = steps[k % 3] * Math.pow(10, Math.floor(k / 3)); }
    g.strokeStyle = color('--line');
    g.fillStyle = color('--soft');
    for (let t = Math.ceil(from / step) * step; t < to; t += step) {
      const x = Math.round(LABEL + (t - from) * s) + 0.5;
      g.beginPath();
      g.moveTo(x, HEAD - 6);
      g.lineTo(x, height);
      g.stroke();
      g.fillText(time(t), x + 3, 12);
    }
  }

  function draw() {
    pending = false;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = height + 'px';
    if (canvas.width !== width() * ratio || canvas.height !== height * ratio) {
      canvas.width = width() * ratio;
      canvas.height = height * ratio;
    }
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.clearRect(0, 0, width(), height);
    g.font = '10px system-ui, sans-serif';
    const s = scale();
    g.fillStyle = color('--panel');
    for (const step of meta.steps) {
      const x = LABEL + (step[0] - from) * s, w = (step[1] - step[0]) * s;
      const left = Math.max(LABEL, x);
      if (step[2] && x + w > LABEL && w > 1) g.fillRect(left, HEAD - 6, x + w - left, height);
    }
    drawAxis(s);
    for (const track of meta.tracks)
      track.rows.forEach(function (row, depth) { drawRow(row, track.y + depth * ROW, s); });
    g.fillStyle = color('--paper');
    g.fillRect(0, 0, LABEL - 2, height);
    g.fillStyle = color('--ink');
    g.font = '11px system-ui, sans-serif';
    for (const track of meta.tracks)
      g.fillText(track.name.length > 31 ? track.name.slice(0, 30) + '…' : track.name, 6,
                 track.y + ROW - 4);
  }
  function request() {
    if (!pending) { pending = true; requestAnimationFrame(draw); }
  }

  function clampView() {
    const least = 20, most = meta.length;
    let span = Math.min(most, Math.max(least, to - from));
    from = Math.min(Math.max(0, from), most - span);
    to = from + span;
    request();
  }
  function zoom(factor, x) {
    const middle = from + Math.max(0, x - LABEL) / scale();
    from = middle - (middle - from) * factor;
    to = middle + (to - middle) * factor;
    clampView();
  }
  function move(share) {
    const by = (to - from) * share;
    from += by;
    to += by;
    clampView();
  }
  function eventAt(x, py) {
    if (x < LABEL) return -1;
    const t = from + (x - LABEL) / scale();
    for (const track of meta.tracks) {
      const depth = Math.floor((py - track.y) / ROW);
      if (depth < 0 || depth >= track.rows.length) continue;
      const row = track.rows[depth], slack = 2 / scale();
      const i = lower(t + slack, row[0], row[1]) - 1;
      if (i >= row[0] && start[i] + duration[i] + slack >= t) return i;
    }
    return -1;
  }

  let drag = null;
  canvas.addEventListener('wheel', function (e) {
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) move((e.deltaX || e.deltaY) / 1000);
    else zoom(Math.exp(e.deltaY / 400), e.offsetX);
  }, { passive: false });
  canvas.addEventListener('mousedown', function (e) { drag = { x: e.clientX, from: from, to: to }; });
  window.addEventListener('mouseup', function () { drag = null; });
  canvas.addEventListener('mousemove', function (e) {
    if (drag !== null) {
      const by = (e.clientX - drag.x) / scale();
      from = drag.from - by;
      to = drag.to - by;
      clampView();
      return;
    }
    const i = eventAt(e.offsetX, e.offsetY);
    tip.style.display = i < 0 ? 'none' : 'block';
    if (i < 0) return;
    tip.textContent = meta.names[name[i]] + ' — ' + time(duration[i]) + ' at ' + time(start[i]);
    tip.style.left = Math.min(e.offsetX + 12, width() - 320) + 'px';
    tip.style.top = e.offsetY + 16 + 'px';
  });
  canvas.addEventListener('mouseleave', function () { tip.style.display = 'none'; });
  canvas.addEventListener('dblclick', function () { from = 0; to = meta.length; clampView(); });
  window.addEventListener('keydown', function (e) {
    if (e.target === search) return;
    const middle = LABEL + (width() - LABEL) / 2;
    if (e.key === 'w') zoom(0.7, middle);
    if (e.key === 's') zoom(1 / 0.7, middle);
    if (e.key === 'a') move(-0.15);
    if (e.key === 'd') move(0.15);
  });
  search.addEventListener('input', function () {
    wanted = search.value.toLowerCase();
    matches = wanted === '' ? null : meta.names.map(function (text) {
      return text.toLowerCase().includes(wanted);
    });
    let events = 0, total = 0;
    if (matches !== null)
      for (let i = 0; i < name.length; ++i)
        if (matches[name[i]]) { ++events; total += duration[i]; }
    found.textContent = matches === null ? '' : events + ' events, ' + time(total) + ' added up';
    request();
  });
  window.addEventListener('resize', request);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', request);
  const view = new URLSearchParams(location.hash.slice(1));  // #from=…&to=… in nanoseconds
  if (view.has('to')) { from = +view.get('from') || 0; to = +view.get('to'); }
  clampView();
})();
