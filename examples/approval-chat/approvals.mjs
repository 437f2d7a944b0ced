// Approvals of wcrm in a Slack channel: Node 22 or newer, no packages. See README.md.
//
// POST /wcrm   the webhook of wcrm: approval.requested/1
// POST /slack  what people press, from Slack

import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

const { WCRM_URL = 'http://127.0.0.1:8787', PORT = '8791', HOST = '127.0.0.1' } = process.env
const { WEBHOOK_SECRET, SLACK_WEBHOOK_URL, SLACK_SIGNING_SECRET, KEYS } = process.env
for (const name of ['WEBHOOK_SECRET', 'SLACK_WEBHOOK_URL', 'SLACK_SIGNING_SECRET', 'KEYS'])
  if (!process.env[name]) throw new Error(`set ${name}`)
/** Keys of people by their ids in Slack. */
const keys = new Map(Object.entries(JSON.parse(KEYS)))

const MAX_BODY_BYTES = 256 * 1024
const isRecent = (seconds) => Math.abs(Date.now() / 1000 - Number(seconds)) < 300
const isEqual = (a, b) => a.length === b.length && timingSafeEqual(a, b)

/** Whether the body is signed by wcrm (Standard Webhooks). */
const isFromWcrm = (headers, body) => {
  const { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signatures } = headers
  if (!id || !signatures || !isRecent(at)) return false
  const key = Buffer.from(WEBHOOK_SECRET.replace(/^whsec_/, ''), 'base64')
  const expected = createHmac('sha256', key).update(`${id}.${at}.`).update(body).digest()
  return signatures
    .split(' ')
    .some((one) => isEqual(Buffer.from(one.replace(/^v1,/, ''), 'base64'), expected))
}

/** Whether the body is signed by Slack. */
const isFromSlack = (headers, body) => {
  const { 'x-slack-request-timestamp': at, 'x-slack-signature': signature } = headers
  if (!signature || !isRecent(at)) return false
  const hex = createHmac('sha256', SLACK_SIGNING_SECRET).update(`v0:${at}:`).update(body).digest('hex')
  return isEqual(Buffer.from(signature), Buffer.from(`v0=${hex}`))
}

const plain = (text) => ({ type: 'plain_text', text: text.slice(0, 2900), emoji: false })
const button = (text, action, id, style) => ({
  type: 'button',
  text: plain(text),
  action_id: action,
  value: id,
  style,
})

/** What a person needs to decide. Slack shows at most 50 blocks of 3,000 characters. */
const toMessage = ({ id, summary = [], reason, expires_at: until, url }) => {
  const lines = [...summary, ...(reason ? [`Reason of the agent: ${reason}`] : []), `Until ${until}`]
  return {
    text: `An AI agent asks: ${summary[0] ?? id}`,
    blocks: [
      { type: 'section', text: plain(lines.join('\n')) },
      {
        type: 'actions',
        elements: [
          button('Approve', 'approve', id, 'primary'),
          button('Decline', 'decline', id, 'danger'),
          ...(url ? [{ type: 'button', text: plain('Open'), action_id: 'open', url }] : []),
        ],
      },
    ],
  }
}

const post = async (url, body, headers = {}) =>
  await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })

const takeEvent = async ({ type, data }) => {
  if (type !== 'approval.requested') return
  const { ok, status } = await post(SLACK_WEBHOOK_URL, toMessage(data.approval))
  if (!ok) throw new Error(`Slack answers ${status}`)
}

/** Decides with the key of the person who pressed; returns what they read. */
const decide = async (user, action, id) => {
  const key = keys.get(user)
  if (!key) return `<@${user}> has no key that approves.`
  const response = await post(
    `${WCRM_URL}/v1/ops/approvals_${action}`,
    { approval_id: id },
    { Authorization: `Bearer ${key}` },
  )
  const body = await response.json()
  if (!response.ok) return `Not done: ${body.detail}`
  return `${action === 'approve' ? 'Approved' : 'Declined'} by <@${user}>.`
}

/** A press: its message keeps its text, and gets the outcome in place of its buttons once there is one. */
const takePress = async ({ type, user, actions, response_url: url, message }) => {
  const { action_id: action, value } = actions?.[0] ?? {}
  if (type !== 'block_actions' || !['approve', 'decline'].includes(action)) return
  const text = await decide(user.id, action, value).catch(
    (error) => `Not done: ${error.message}. Press again.`,
  )
  const isDone = !/^Not done|has no key/.test(text)
  const section = { type: 'section', text: { type: 'mrkdwn', text } }
  await post(
    url,
    isDone
      ? { replace_original: true, text, blocks: [message.blocks[0], section] }
      : { replace_original: false, response_type: 'ephemeral', text },
  )
}

const readBody = async (request) => {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const server = createServer(async (request, response) => {
  const end = (status) => response.writeHead(status).end()
  try {
    const body = await readBody(request)
    if (body === undefined) return end(413)
    if (request.method !== 'POST') return end(404)
    if (request.url === '/wcrm') {
      if (!isFromWcrm(request.headers, body)) return end(401)
      // wcrm delivers again what was not accepted.
      await takeEvent(JSON.parse(body))
      return end(204)
    }
    if (request.url !== '/slack') return end(404)
    if (!isFromSlack(request.headers, body)) return end(401)
    const press = JSON.parse(new URLSearchParams(body.toString()).get('payload') ?? '{}')
    // Slack waits for three seconds; what came of the press is posted to its response URL.
    end(200)
    await takePress(press)
  } catch (error) {
    console.error(error.message)
    if (!response.headersSent) end(500)
  }
})
server.listen(Number(PORT), HOST, () => console.log(JSON.stringify({ port: server.address().port })))
