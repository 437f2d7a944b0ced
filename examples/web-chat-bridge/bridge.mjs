// A web chat page and its bridge to wcrm, in one file: Node 20 or newer, no packages.
//
//   CHANNEL_ID=3 CHANNEL_TOKEN=wc_chan_… CHANNEL_SECRET=whsec_… WCRM_URL=http://127.0.0.1:8787 node bridge.mjs
//
// GET /          the page of a visitor
// POST /messages what a visitor writes, passed on to wcrm
// GET /events    what staff reply, streamed to the page
// POST /read     the visitor has seen a reply
// POST /replies  where wcrm delivers replies: the channel's URL

import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const { CHANNEL_ID, CHANNEL_TOKEN, CHANNEL_SECRET, WCRM_URL = 'http://127.0.0.1:8787' } = process.env
const { PORT = '8790', HOST = '127.0.0.1', BRIDGE_FILE = 'web-chat.jsonl' } = process.env
for (const name of ['CHANNEL_ID', 'CHANNEL_TOKEN', 'CHANNEL_SECRET'])
  if (!process.env[name]) throw new Error(`set ${name}, as wcrm admin channels create printed it`)

// What was delivered, by visitor, and the ids of it: wcrm delivers a reply again when it missed our answer. It is
// in a file, so that a restart forgets nothing; with more than one process, use a table with a unique key.
const replies = new Map()
const seen = new Set()
const pages = new Map() // the open pages of each visitor

const remember = (reply) => {
  seen.add(reply.id)
  replies.set(reply.to.id, [...(replies.get(reply.to.id) ?? []), reply])
}
if (existsSync(BRIDGE_FILE))
  for (const line of readFileSync(BRIDGE_FILE, 'utf8').split('\n').filter(Boolean)) remember(JSON.parse(line))

/** Posts to wcrm. Repeats are safe: a message has an id of ours, and a status says the same twice. */
const post = async (path, body) => {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${WCRM_URL}/channels/${CHANNEL_ID}/${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${CHANNEL_TOKEN}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }).catch(() => undefined)
    if (response?.ok) return
    const isTransient = response === undefined || response.status >= 500 || response.status === 429
    if (!isTransient || attempt === 5)
      throw new Error(response ? await response.text() : 'wcrm cannot be reached')
    await sleep(500 * 2 ** attempt)
  }
}

/** Whether the body is signed by wcrm (Standard Webhooks), over its bytes, in the last five minutes. */
const isSigned = (headers, body) => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures } = headers
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - Number(at)) < 300)) return false
  const key = Buffer.from(CHANNEL_SECRET.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest()
  return signatures.split(' ').some((one) => {
    const given = Buffer.from(one.replace(/^v1,/, ''), 'base64')
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

const show = (page, { id, from, text, media }) =>
  page.write(`id: ${id}\ndata: ${JSON.stringify({ id, from: from.name, text, url: media?.url ?? null })}\n\n`)

/** Takes a delivered reply: once, before the answer, and then shows it. */
const takeReply = (reply) => {
  if (seen.has(reply.id)) return
  appendFileSync(BRIDGE_FILE, `${JSON.stringify(reply)}\n`, { mode: 0o600 })
  remember(reply)
  const open = pages.get(reply.to.id) ?? new Set()
  for (const page of open) show(page, reply)
  if (open.size > 0) report(reply.id, 'delivered')
}

const report = (id, status) =>
  void post('statuses', { message_id: id, status }).catch((error) => console.error(error.message))

/** Streams replies to a page: those that it missed first. */
const streamReplies = (request, response, visitor) => {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
  response.write(': connected\n\n')
  const all = replies.get(visitor) ?? []
  const last = request.headers['last-event-id']
  const missed = all.slice(all.findIndex(({ id }) => id === last) + 1)
  for (const reply of missed) {
    show(response, reply)
    report(reply.id, 'delivered')
  }
  const open = pages.get(visitor) ?? new Set()
  pages.set(visitor, open.add(response))
  request.on('close', () => open.delete(response))
}

const readBody = async (request) => {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > 200_000) throw new Error('the body is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The visitor of a browser: an id that nobody can guess, in a cookie that scripts cannot read. */
const visitorOf = ({ headers }) => /(?:^|; )visitor=([\w-]{36})/.exec(headers.cookie ?? '')?.[1]

const serve = async (request, response) => {
  const route = `${request.method} ${request.url.split('?')[0]}`
  if (route === 'POST /replies') {
    const body = await readBody(request)
    if (!isSigned(request.headers, body)) return response.writeHead(401).end()
    takeReply(JSON.parse(body))
    return response.writeHead(204).end()
  }
  const visitor = visitorOf(request)
  if (route === 'GET /') {
    const cookie = `visitor=${visitor ?? randomUUID()}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax`
    return response
      .writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Set-Cookie': cookie })
      .end(page)
  }
  if (!visitor) return response.writeHead(401).end('Open the page first.')
  if (route === 'GET /events') return streamReplies(request, response, visitor)
  if (route === 'POST /messages') {
    const { id, text, name } = JSON.parse(await readBody(request))
    await post('inbound', { id: `${visitor}:${id}`, from: { id: visitor, name }, text })
    return response.writeHead(204).end()
  }
  if (route === 'POST /read') {
    const { id } = JSON.parse(await readBody(request))
    if (replies.get(visitor)?.some((reply) => reply.id === id)) report(id, 'read')
    return response.writeHead(204).end()
  }
  response.writeHead(404).end()
}

const page = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Chat</title>
<style>
  body { font: 16px system-ui; max-width: 32rem; margin: 2rem auto; padding: 0 1rem }
  #log { display: grid; gap: .5rem; margin-bottom: 1rem }
  p { margin: 0; padding: .5rem .75rem; border-radius: .75rem; background: #eee; justify-self: start }
  .mine { background: #cde; justify-self: end }
  form { display: flex; gap: .5rem }
  input { flex: 1; font: inherit; padding: .5rem }
</style>
<div id="log" aria-live="polite"></div>
<form><input name="text" required maxlength="4000" autocomplete="off" aria-label="Message"><button>Send</button></form>
<script>
  const log = document.querySelector('#log')
  const add = (text, mine) => {
    const line = document.createElement('p')
    line.textContent = text
    line.className = mine ? 'mine' : ''
    log.append(line)
    return line
  }
  const send = (path, body) =>
    fetch(path, { method: 'POST', body: JSON.stringify(body) }).then((answer) => {
      if (!answer.ok) throw new Error(answer.status)
    })
  const shown = new Set()
  new EventSource('/events').onmessage = ({ data }) => {
    const { id, from, text, url } = JSON.parse(data)
    if (shown.has(id)) return
    shown.add(id)
    add([from, ': ', text, url].filter(Boolean).join(' '), false)
    send('/read', { id }).catch(() => {})
  }
  document.querySelector('form').onsubmit = async (event) => {
    event.preventDefault()
    const input = event.target.text
    const message = { id: crypto.randomUUID(), text: input.value }
    const line = add(message.text, true)
    input.value = ''
    await send('/messages', message).catch(() => line.append(' (not sent)'))
  }
</script>
</html>
`

const server = createServer((request, response) => {
  serve(request, response).catch((error) => {
    console.error(error.message)
    if (!response.headersSent) response.writeHead(502).end('Try again later.')
  })
})
server.listen(Number(PORT), HOST, () => {
  const url = `http://${HOST}:${server.address().port}`
  console.log(JSON.stringify({ url, replies_url: `${url}/replies` }))
})
process.on('SIGTERM', () => process.exit(0))
