import { createClient, isWcrmError, verifyWebhook, WebhookVerificationError } from '@wcrm/client'

// What is run in each runtime; it uses nothing that browsers do not have.

export type Settings = {
  /** A server behind a proxy that loses requests and answers and cuts streams. */
  readonly url: string
  readonly apiKey: string
  /** A conversation without notes. */
  readonly conversationId: string
  /** Where nothing listens. */
  readonly closedUrl: string
  readonly webhook: {
    readonly secret: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
}

const check = (isRight: boolean, what: unknown): void => {
  if (!isRight) throw new Error(typeof what === 'string' ? what : JSON.stringify(what))
}

/** Returns the error of a promise that must have one. */
const failureOf = async (work: PromiseLike<unknown>): Promise<unknown> => {
  try {
    await work
  } catch (error) {
    return error
  }
  throw new Error('It did not fail.')
}

const PHONES = Array.from({ length: 24 }, (_, i) => `+155501${String(i).padStart(5, '0')}`)
const NOTES = Array.from({ length: 24 }, (_, i) => `Note ${String(i).padStart(2, '0')}`)
const NAMES = Array.from({ length: 12 }, (_, i) => `Group ${String(i).padStart(2, '0')}`)

type Check = (settings: Settings) => Promise<void>

const upsert: Check = async ({ url, apiKey }) => {
  const keys = new Map<string, number>()
  const wcrm = createClient({
    url,
    apiKey,
    retries: 40,
    onAttempt: ({ idempotencyKey: key = '' }) => void keys.set(key, (keys.get(key) ?? 0) + 1),
  })
  const answers = await Promise.all(
    PHONES.map((phone) => wcrm.contacts.upsert({ phone, name: 'Größe 漢字 😀' })),
  )
  check(
    answers.every(({ action }) => action === 'created'),
    answers.map(({ action }) => action),
  )
  const attempts = [...keys.values()].reduce((sum, count) => sum + count, 0)
  check(keys.size === PHONES.length && attempts > PHONES.length, [keys.size, attempts])
}

/** Unlike upserts, notes are as many as there were calls. */
const notes: Check = async ({ url, apiKey, conversationId }) => {
  const wcrm = createClient({ url, apiKey, retries: 40 })
  const conversation = { conversation_id: conversationId }
  await Promise.all(NOTES.map((text) => wcrm.conversations.note({ ...conversation, text })))
  const found: (string | null)[] = []
  for await (const { note, text } of wcrm.conversations.messages({ ...conversation, limit: 10 }))
    if (note) found.push(text)
  check(JSON.stringify(found.sort()) === JSON.stringify(NOTES), found)
}

const list: Check = async ({ url, apiKey }) => {
  const wcrm = createClient({ url, apiKey, retries: 40 })
  const names: (string | null | undefined)[] = []
  for await (const { name } of wcrm.contacts.search({ limit: 10 })) names.push(name)
  // And the customer of the conversation.
  check(names.filter((name) => name === 'Größe 漢字 😀').length === PHONES.length, names)
  check(names.length === PHONES.length + 1, names)
}

const stream: Check = async ({ url, apiKey }) => {
  const wcrm = createClient({ url, apiKey, retries: 40 })
  const stop = new AbortController()
  const events = wcrm.stream({ after: 'now', types: ['group.created'], signal: stop.signal })
  const first = events.next()
  const seen: string[] = []
  // The first one is made until it is seen: when the stream begins cannot be told.
  let isOpen = false
  const begun = first.then(({ value }) => {
    isOpen = true
    check(value?.type === 'group.created/1', value)
  })
  for (let i = 0; !isOpen; i++) {
    await wcrm.groups.create({ name: `Before ${i}` })
    await Promise.race([begun, new Promise((resolve) => setTimeout(resolve, 200))])
  }
  await begun
  const writing = (async () => {
    for (const name of NAMES) await wcrm.groups.create({ name })
  })()
  for await (const event of events) {
    if (event.type === 'group.created/1' && !event.data.group.name.startsWith('Before'))
      seen.push(event.data.group.name)
    if (seen.length === NAMES.length) stop.abort()
  }
  await writing
  check(JSON.stringify(seen) === JSON.stringify(NAMES), seen)
}

const errors: Check = async ({ url, apiKey, closedUrl }) => {
  const wcrm = createClient({ url, apiKey, retries: 40 })
  const invalid = await failureOf(wcrm.contacts.upsert({ phone: 'none' }))
  check(isWcrmError(invalid, 'invalid_input') && invalid.errors[0]?.pointer === '#/phone', String(invalid))
  const gone = await failureOf(wcrm.contacts.get({ contact_id: '999999999' }))
  check(isWcrmError(gone, 'not_found') && gone.status === 404 && gone.requestId !== undefined, String(gone))
  const closed = createClient({ url: closedUrl, apiKey, retries: 1 })
  const unreached = await failureOf(closed.groups.create({ name: 'A' }, { idempotencyKey: 'never-made-1' }))
  check(isWcrmError(unreached, 'connection_failed') && unreached.mayHaveHappened, String(unreached))
}

/** What a proxy may do: `path` is what it does at these addresses. */
const failAt =
  (path: string, settings: { readonly timeoutMs?: number; readonly abortMs?: number } = {}): Check =>
  async ({ url, apiKey }) => {
    const { timeoutMs = 20_000, abortMs } = settings
    const wcrm = createClient({ url: `${url}/${path}`, apiKey, retries: 0, timeoutMs })
    const options = abortMs === undefined ? {} : { signal: AbortSignal.timeout(abortMs) }
    const began = Date.now()
    const error = await failureOf(wcrm.whoami({}, options))
    check(isWcrmError(error, 'connection_failed'), String(error))
    check(Date.now() - began < 5000, `after ${Date.now() - began} ms`)
  }

const webhooks: Check = async ({ webhook }) => {
  const event = await verifyWebhook(webhook)
  check(event.type === 'group.created', event)
  const bytes = new TextEncoder().encode(webhook.body)
  await verifyWebhook({ ...webhook, headers: new Headers(webhook.headers), body: bytes })
  const changed = await failureOf(verifyWebhook({ ...webhook, body: `${webhook.body} ` }))
  check(changed instanceof WebhookVerificationError, String(changed))
}

const checks: Readonly<Record<string, Check>> = {
  'upserts, each once': upsert,
  'notes, each once': notes,
  'list, page by page': list,
  'stream, resumed': stream,
  'typed errors': errors,
  'no answer in time': failAt('silent', { timeoutMs: 300 }),
  'ended by a signal': failAt('silent', { abortMs: 300 }),
  'answer that is cut': failAt('cut'),
  'redirection refused': failAt('moved'),
  verifyWebhook: webhooks,
}

/** Returns what failed, by the name of the check; null for what did not. */
export const runProgram = async (settings: Settings): Promise<Record<string, string | null>> => {
  const results: Record<string, string | null> = {}
  for (const [name, run] of Object.entries(checks))
    results[name] = await run(settings).then(
      () => null,
      (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : String(error)),
    )
  return results
}
