import { randomUUID } from 'node:crypto'
import { Command } from 'commander'
import { type EventTypeId, eventTypes } from '../catalog/events.ts'
import { runOneCommand } from './command-tree.ts'
import { loadCredentials } from './credentials.ts'
import { cliError, isCliError, usageError } from './error.ts'
import type { Io } from './io.ts'
import { readManifest } from './manifest.ts'
import { callOperation, type ServerConnection } from './remote.ts'
import { printResult } from './result.ts'
import { createSandboxClient } from './sandbox/client.ts'
import type { SandboxClient } from './sandbox/verbs.ts'
import { type TriggerContext, recipes, waitFor } from './trigger/recipes.ts'

type TriggerFlags = {
  readonly test?: boolean
  readonly endpoint?: string
  readonly wait: string
  readonly url?: string
  readonly json?: boolean
}

const names = Object.keys(eventTypes).toSorted() as EventTypeId[]
const TEST_FORM = 'a test event to an endpoint'

const pairsOf = (text: string): Set<string> =>
  new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => text.slice(i, i + 2)))

/** Names that share many pairs of letters with the given one, the nearest first. */
const findNear = (given: string): string[] => {
  const pairs = pairsOf(given.toLowerCase())
  return names
    .map((name) => name.replace(/\/\d+$/, ''))
    .map((name) => ({
      name,
      shared: [...pairsOf(name)].filter((pair) => pairs.has(pair)).length / pairs.size,
    }))
    .filter(({ shared }) => shared >= 0.5)
    .toSorted((a, b) => b.shared - a.shared)
    .slice(0, 5)
    .map(({ name }) => name)
}

const parseWait = (text: string): number => {
  if (/^(?:\d|10)$/.test(text)) return Number(text)
  throw usageError(`--wait must be a number of seconds from 0 to 10, not "${text}".`, '--wait')
}

/** Finds an event type; the version may be left out. Throws a usage error with near names. */
const requireEvent = (given: string): EventTypeId => {
  const found = names.find((name) => name === given || name.replace(/\/\d+$/, '') === given)
  if (found) return found
  const near = findNear(given)
  throw Object.assign(usageError(`There is no event ${JSON.stringify(given)}.`, '<event>'), {
    hint: near.length > 0 ? `Did you mean: ${near.join(', ')}?` : 'List them: wcrm trigger',
  })
}

/** Whether the server plays the sandbox. */
const hasSandbox = async (sandbox: SandboxClient): Promise<boolean> => {
  try {
    await sandbox('GET', 'clock')
    return true
  } catch (error) {
    if (isCliError(error) && error.problem['reason'] === 'no_sandbox') return false
    throw error
  }
}

/** Makes the event happen, and waits until it is in the event log. */
const happen = async (event: EventTypeId, context: TriggerContext) => {
  const before = (await context.call('events_list', { after: 'now' }))['next_cursor'] as string | null
  const { how, make } = recipes[event]!
  await make(context)
  const id = await waitFor(`event ${event}`, async () => {
    const after = before === null ? {} : { after: before }
    const { data } = await context.call('events_list', { ...after, types: [event], limit: 1 })
    return (data as { id: string }[])[0]?.id
  })
  return { event, made: 'sandbox', how, event_id: id }
}

type Endpoint = {
  id: string
  url: string
  status: string
  subscriptions: { event_types: { id: string; active: boolean }[] }
}

/** The endpoint that gets the test: one that has subscribed to the event, else any that is active. */
const chooseEndpoint = async (event: EventTypeId, { call }: TriggerContext): Promise<string> => {
  const { data } = await call('webhooks_list_endpoints', { status: 'active', limit: 100 })
  const endpoints = data as Endpoint[]
  const isSubscribed = ({ subscriptions }: Endpoint): boolean =>
    subscriptions.event_types.some(({ id, active }) => active && id === event)
  const chosen = endpoints.find(isSubscribed) ?? endpoints[0]
  if (chosen) return chosen.id
  throw Object.assign(
    cliError(3, {
      type: 'about:blank',
      title: 'Not found',
      status: 404,
      code: 'not_found',
      detail: `${event} is sent as a test event to a webhook endpoint here, and there is no active one.`,
    }),
    { hint: 'Make one: wcrm webhooks create --url https://…' },
  )
}

const sendTest = async (
  event: EventTypeId,
  { endpoint, waitSeconds }: { endpoint: string | undefined; waitSeconds: number },
  context: TriggerContext,
) => {
  const endpointId = endpoint ?? (await chooseEndpoint(event, context))
  const input = { endpoint_id: endpointId, event_type_id: event, wait_seconds: waitSeconds }
  const sent = await context.call('webhooks_send_test', input)
  const { event_id, delivery_id, outcome } = sent
  return { event, made: 'test', how: TEST_FORM, event_id, endpoint_id: endpointId, delivery_id, outcome }
}

const trigger = async (io: Io, given: string | undefined, flags: TriggerFlags): Promise<void> => {
  const json = flags.json === true
  if (given === undefined) {
    const data = names.map((name) => ({
      event: name,
      how: recipes[name]?.how ?? TEST_FORM,
      about: eventTypes[name].description,
    }))
    return await printResult(io, { data }, { columns: ['event', 'how', 'about'], json })
  }
  const event = requireEvent(given)
  const waitSeconds = parseWait(flags.wait)
  const to: ServerConnection = {
    io,
    ...(await loadCredentials(io.env, flags.url, (text) => io.stderr.write(text))),
    version: readManifest().version,
  }
  const writes = new Set(readManifest().commands.flatMap((c) => (c.writes ? [c.operation] : [])))
  const context: TriggerContext = {
    call: async (operation, input, confirm) =>
      (
        await callOperation(
          to,
          operation,
          input,
          writes.has(operation) ? { idempotencyKey: randomUUID(), confirm } : {},
        )
      ).value,
    sandbox: createSandboxClient(io, flags.url),
  }
  const asTest =
    flags.test === true ||
    flags.endpoint !== undefined ||
    !recipes[event] ||
    !(await hasSandbox(context.sandbox))
  await printResult(
    io,
    asTest
      ? await sendTest(event, { endpoint: flags.endpoint, waitSeconds }, context)
      : await happen(event, context),
    { json },
  )
}

/** The command with its flags, also for its manual page. */
export const createCommand = (io: Io): Command =>
  new Command('wcrm trigger')
    .description(
      'Trigger an event: on a server with the sandbox it really happens, with a fictitious customer; ' +
        'otherwise, and for events that the sandbox cannot trigger, an endpoint gets a test event. Without ' +
        'a name it lists the events.',
    )
    .argument('[event]', 'an event type, such as message.received')
    .option('--test', 'always send a test event to an endpoint')
    .option('--endpoint <id>', 'send a test event to this endpoint (default: one that has subscribed to it)')
    .option('--wait <seconds>', 'seconds to wait for the response of the endpoint', '10')
    .option('--url <url>', 'base URL of the server (also WCRM_URL)')
    .option('--json', 'print JSON')
    .action((event: string | undefined, flags: TriggerFlags) => trigger(io, event, flags))

/** `wcrm trigger <event>`: makes an event happen in the sandbox, or sends it as a test. Returns the exit code. */
export const run = (argv: string[], io: Io): Promise<number> => runOneCommand(createCommand, argv, io)
