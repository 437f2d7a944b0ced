import { setTimeout as pause } from 'node:timers/promises'

/**
 * One request to one of the servers. `at` and `ms` are of the monotonic clock; `status` is 0 when nothing answered in
 * time.
 */
export type Attempt = { server: number; at: number; ms: number; status: number; reason: string | undefined }

/** What was acknowledged: ids of contacts by phone, contacts that were tagged, and marks of replies. */
export type Acknowledged = {
  contacts: Map<string, string>
  tagged: Set<string>
  replies: Map<string, string>
}

export type Clients = {
  attempts: Attempt[]
  acknowledged: Acknowledged
  /** Changes that never got a final answer: their marks, with the last answer. */
  open: string[]
  stop: () => Promise<void>
}

type Change = { key: string; path: string; body: unknown; acknowledge: (body: Answer) => void }
type Answer = { id?: string; message?: { id: string }; reason?: string; detail?: string }

const CLIENTS = 12
/** Each client sends so often, unless it waits for an answer: 30 changes a second of all. */
const EVERY_MS = 400
const REPEAT_MS = 500
const PATIENCE_MS = 35_000
/** After so long without a final answer, a change is given up. */
const GIVE_UP_MS = 180_000

type Options = { urls: readonly string[]; apiKey: string; conversations: readonly string[] }

const send = async (
  options: Options,
  server: number,
  { key, path, body }: Change,
): Promise<[Attempt, Answer]> => {
  const at = performance.now()
  let status = 0
  let answer: Answer = {}
  try {
    const response = await fetch(`${options.urls[server]}${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${options.apiKey}`,
        'content-type': 'application/json',
        'idempotency-key': key,
        'api-confirm': 'send',
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE_MS),
    })
    answer = (await response.json()) as Answer
    status = response.status
  } catch (error) {
    answer = { reason: (error as Error).name }
  }
  return [{ server, at, ms: performance.now() - at, status, reason: answer.reason }, answer]
}

/** Two of four changes create a contact, one tags the contact before it, one answers a customer. */
const createChange = (
  { conversations }: Options,
  { contacts, tagged, replies }: Acknowledged,
  n: number,
): Change => {
  const phoneOf = (i: number): string => `1555${String(i).padStart(7, '0')}`
  const phone = phoneOf(n)
  if (n % 4 === 3) {
    const mark = `mark-${n}`
    const conversation = conversations[Math.floor(n / 4) % conversations.length]
    return {
      key: `failover-${mark}`,
      path: `/v1/conversations/${conversation}/messages`,
      body: { text: mark },
      acknowledge: ({ message }) => replies.set(mark, message!.id),
    }
  }
  if (n % 4 === 2 && contacts.has(phoneOf(n - 2))) {
    const earlier = phoneOf(n - 2)
    return {
      key: `failover-tag-${n}`,
      path: '/v1/contacts',
      body: { phone: `+${earlier}`, tags: ['kept'] },
      acknowledge: () => tagged.add(earlier),
    }
  }
  return {
    key: `failover-contact-${n}`,
    path: '/v1/contacts',
    body: { phone: `+${phone}`, name: `Customer ${n}`, tags: ['load'] },
    acknowledge: ({ id }) => contacts.set(phone, id!),
  }
}

/**
 * Sends changes to the servers in turn until it is stopped. Each is repeated under its key, at the other server,
 * until it is acknowledged.
 */
export const startClients = (options: Options): Clients => {
  const acknowledged: Acknowledged = { contacts: new Map(), tagged: new Set(), replies: new Map() }
  const attempts: Attempt[] = []
  const open: string[] = []
  let next = 0
  let isOver = false
  const make = async (n: number): Promise<void> => {
    const change = createChange(options, acknowledged, n)
    const deadline = performance.now() + GIVE_UP_MS
    for (let turn = n; ; turn++) {
      const [attempt, answer] = await send(options, turn % options.urls.length, change)
      attempts.push(attempt)
      if (attempt.status === 200 || attempt.status === 201) return change.acknowledge(answer)
      if (performance.now() > deadline) {
        open.push(`${change.key}: ${attempt.status} ${attempt.reason ?? ''} ${answer.detail ?? ''}`)
        return
      }
      await pause(REPEAT_MS)
    }
  }
  const client = async (i: number): Promise<void> => {
    await pause((i * EVERY_MS) / CLIENTS)
    while (!isOver) await Promise.all([make(next++), pause(EVERY_MS)])
  }
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => client(i)))
  return {
    attempts,
    acknowledged,
    open,
    stop: async () => {
      isOver = true
      await clients
    },
  }
}
