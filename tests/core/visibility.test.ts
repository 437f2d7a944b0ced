import assert from 'node:assert/strict'
import { it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { finishBackgroundWork } from '../background.ts'
import { type Door, doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { runs } from '../level.ts'
import type { TestServer } from '../servers.ts'
import { buildExampleInputs } from '../world.ts'
import { NO_ID } from './visibility-filters.ts'
import { GUESSES, probes } from './visibility-inputs.ts'
import { seedTwin, type TwinWorld, type Viewer } from './visibility-world.ts'

/*
 * The differential test: what a viewer may not see changes nothing that they can see. Two workspaces are alike
 * but for what is hidden from the viewer, the same calls are made to both, and the answers must be the same
 * byte for byte. Ids are alike by construction; random ids become placeholders in the order of appearance.
 */

const NOON = Date.UTC(2026, 9, 5, 12)

const replies = ['teamReplies', 'privateReplies'] as const
const viewers: readonly Viewer[] = [
  {
    title: 'an agent from whom phones, channels and fields are hidden',
    staff: { role: 'agent', hide_phone_numbers: true, reports: true },
    limited: true,
    hidden: ['phones', 'channels', 'fields', ...replies],
  },
  {
    title: "the key of an owner's AI agent",
    staff: { role: 'owner' },
    agent: true,
    hidden: ['phones', 'privateReplies'],
  },
  {
    title: 'the test key of such an agent',
    staff: { role: 'agent', hide_phone_numbers: true },
    limited: true,
    test: true,
    hidden: ['phones', 'channels', 'fields', ...replies],
  },
  {
    title: 'a manager who is limited to channels',
    staff: { role: 'manager' },
    limited: true,
    hidden: ['channels', 'privateReplies'],
  },
  {
    title: 'an agent who is limited to channels',
    staff: { role: 'agent', reports: true },
    limited: true,
    hidden: ['channels', 'fields', ...replies],
  },
  {
    title: 'an agent from whom phones are hidden',
    staff: { role: 'agent', hide_phone_numbers: true },
    hidden: ['phones', 'fields', ...replies],
  },
  { title: 'an agent', staff: { role: 'agent' }, hidden: ['fields', ...replies] },
]

let clock = NOON
const now = (): string => new Date(clock).toISOString()

/** A call, and what the viewer got: status, headers and body. */
type Answer = { call: string; answer: string }

/** Replaces what is random by placeholders, which are numbered in the order of appearance. */
const createNormalizer = (world: TwinWorld): ((text: string) => string) => {
  const names = new Map<string, string>()
  const toName = (found: string, kind: string): string => {
    if (!names.has(found)) names.set(found, `${kind}#${names.size}`)
    return names.get(found)!
  }
  return (text) =>
    text
      .replaceAll(/\breq_[0-9A-HJKMNP-TV-Z]{26}/g, 'req')
      .replaceAll(/\b(ep|evt|dlv|plan)_[0-9A-HJKMNP-TV-Z]{26}/g, toName)
      .replaceAll(/whsec_[\w+/=*]+/g, 'whsec')
      // The hash of an answer with ids and secrets.
      .replaceAll(/(etag: "\d+)\.[\w-]{16}"/g, '$1"')
      // The provider's id of a user differs by account.
      .replaceAll(/\bUS\.[\d*]{15,20}(?!\w)/g, (id) => toName(id, 'user'))
      .replaceAll(
        /"(next_cursor|cursor)":"([^"#]+)"/g,
        (_, name, cursor: string) => `"${name}":${cursor.length}`,
      )
      .replaceAll(/\/(media|qr)\/[\w.~-]+/g, (found, kind: string) => `/${kind}/${found.length}`)
      .replaceAll(/(?<=message\/|"code":")[A-Z0-9]{14}\b/g, (code) => toName(code, 'code'))
      .replaceAll(/"(expires_at|next_attempt_at|old_secret_valid_until|ended_at)":"[^"]+"/g, '"$1":"…"')
      .replaceAll(/"old_secrets_valid_until":\["[^"]+"\]/g, '"old_secrets_valid_until":["…"]')
      .replaceAll(/"remaining":\d+/g, '"remaining":"…"')
      // How fast a job was is measured, not told by the test's clock.
      .replaceAll(/"per_second":[\d.]+/g, '"per_second":"…"')
      .replaceAll(/"token":"[^"]+"/g, '"token":"…"')
      .replaceAll(/"media_handle":"[^"]+"/g, '"media_handle":"…"')
      .replaceAll(world.workspace.id, 'WORKSPACE')
}

const IGNORED_HEADERS = new Set(['date', 'request-id', 'ratelimit', 'content-length'])

const describeAnswer = ({ status, text, headers, exit }: Reply): string => {
  const shown = Object.entries(headers).filter(([name]) => !IGNORED_HEADERS.has(name))
  return [status, exit, ...shown.map((pair) => pair.join(': ')), text].join('\n')
}

type Transcript = {
  answers: Answer[]
  /** `plan`: as the option of a door. */
  call: (door: Door, op: Operation, input: object, plan?: string) => Promise<Reply>
  stream: (url: string, key: string) => Promise<void>
}

/** Starts the record of calls to a world. Each call is a second after the one before. */
const startTranscript = (server: TestServer, world: TwinWorld): Transcript => {
  const answers: Answer[] = []
  const normalize = createNormalizer(world)
  return {
    answers,
    call: async (door, op, input, plan) => {
      clock += 1000
      const confirm = { ...(op.confirm ? { confirm: op.confirm } : {}), ...(plan ? { plan } : {}) }
      const idempotency =
        op.scope === 'mcp:read' ? {} : { idempotencyKey: `visibility-${String(answers.length)}` }
      const reply = await door.call(op.name, input as Record<string, unknown>, { ...confirm, ...idempotency })
      // Statuses of what was sent, and what a job does, come before the next call, not during it.
      if (op.scope !== 'mcp:read') await finishBackgroundWork(server, world.workspace.id)
      if (op.name.startsWith('messaging_send_') && reply.status < 300) {
        clock += 10_000
        await server.settle()
      }
      answers.push({
        call: normalize(`${op.name} over ${door.name} ${JSON.stringify(input)}`),
        answer: normalize(describeAnswer(reply)),
      })
      return reply
    },
    stream: async (url, key) => {
      answers.push({ call: url, answer: normalize(await readStream(url, key)) })
    },
  }
}

/** Reads the event stream up to the last event of the log. */
const readStream = async (url: string, key: string): Promise<string> => {
  const headers = { Authorization: `Bearer ${key}` }
  let after = ''
  for (let next: string | null = ''; next !== null;) {
    const page = (await (await fetch(`${url}?limit=100${next && `&after=${next}`}`, { headers })).json()) as {
      data: { id: string }[]
      next_cursor: string | null
    }
    after = page.data.at(-1)?.id ?? after
    next = page.next_cursor
  }
  const response = await fetch(url, { headers: { ...headers, Accept: 'text/event-stream' } })
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.includes(`id: ${after}`) && text.endsWith('\n\n')) return text
  }
  return text
}

const MAX_PAGES = 4

/** Calls an operation, and follows the cursor of a list. */
const callWithPages = async (
  transcript: Transcript,
  door: Door,
  op: Operation,
  input: object,
): Promise<void> => {
  let reply = await transcript.call(door, op, input)
  for (let page = 1; page < MAX_PAGES && 'cursor' in op.input.shape && reply.body?.next_cursor; page++)
    reply = await transcript.call(door, op, { ...input, cursor: reply.body.next_cursor })
}

const listInputs = (world: TwinWorld, op: Operation): Record<string, unknown>[] => [
  ...buildExampleInputs(world, op),
  ...probes[op.name as keyof typeof probes](world),
]

type Inputs = Record<string, unknown>[]
/** Which operations are tried, with which inputs and through which doors. */
type Plan = {
  operations: readonly Operation[]
  most: (inputs: Inputs, count: number) => Inputs
  doors: (all: Door[]) => Door[]
}

/** Everything through every door. */
const thorough: Plan = { operations: catalog, most: (inputs) => inputs, doors: (all) => all }

/** A few inputs of every other operation through one door each; the rest on the other database. */
const createLightPlan = (database: string): Plan => {
  const parity = database === 'embedded' ? 0 : 1
  let turn = 0
  return {
    operations: catalog.filter((_, i) => i % 2 === parity),
    most: (inputs, count) =>
      inputs.length <= count
        ? inputs
        : Array.from({ length: count }, (_, i) => inputs[Math.floor(((i + 0.5) * inputs.length) / count)]!),
    // The command line starts slowest.
    doors: (all) => [all[turn++ % 3]!],
  }
}

/** Whether a change names a phone that one of the twins has. */
const isGuess = (input: object): boolean => GUESSES.some((phone) => JSON.stringify(input).includes(phone))

/** Whether a change is for several at once, side by side: then the order of what it makes is a matter of chance. */
const isUnordered = (op: Operation, input: Record<string, unknown>): boolean => {
  const { contact_ids: ids } = input as { contact_ids?: unknown[] }
  return (
    op.name === 'messaging_send_bulk' && (ids === undefined || ids.filter((id) => id !== NO_ID).length > 1)
  )
}

/** Calls every operation: reads and dry runs, then changes, deletes last, then reads once more. */
const recordCalls = async (
  server: TestServer,
  world: TwinWorld,
  viewer: Viewer,
  plan: Plan,
): Promise<Answer[]> => {
  clock = NOON + 600_000
  const doors = doorsOf(server.url, world.key)
  const transcript = startTranscript(server, world)
  const reads = plan.operations.filter((op) => op.scope === 'mcp:read')
  const changes = plan.operations
    .filter((op) => op.scope !== 'mcp:read')
    .toSorted((a, b) => Number(a.confirm === 'delete') - Number(b.confirm === 'delete'))
  for (const op of reads)
    // Counts answer most filters, and soonest.
    for (const input of plan.most(listInputs(world, op), op.name === 'crm_count_contacts' ? 12 : 2))
      for (const door of plan.doors(doors)) await callWithPages(transcript, door, op, input)
  for (const op of changes.filter((op) => op.dryRun))
    for (const input of plan.most(listInputs(world, op), 1))
      for (const door of plan.doors(doors)) {
        const dry = { ...input, dry_run: true }
        const { status } = await transcript.call(door, op, dry)
        // Before and after of each record.
        if (status < 300 && door.name !== 'cli') await transcript.call(door, op, dry, 'show')
      }
  for (const op of changes)
    for (const input of plan.most(listInputs(world, op), 1)) {
      if ((viewer.staff.hide_phone_numbers || viewer.agent) && !viewer.test && isGuess(input)) continue
      // Their dry runs say whom they are for.
      if (isUnordered(op, input)) continue
      await transcript.call(doors[1]!, op, input)
      // What was approved runs in the background: the next call finds it ended.
      if (op.name === 'approvals_approve') await server.app.jobs.job('approvals').runOnce()
    }
  for (const op of reads.filter((op) => 'cursor' in op.input.shape))
    for (const input of plan.most(listInputs(world, op), 1).slice(0, 3))
      await transcript.call(doors[1]!, op, input)
  await transcript.stream(`${server.url}/v1/events`, world.key)
  return transcript.answers
}

const findDifferences = (first: readonly Answer[], second: readonly Answer[]): string[] =>
  first.flatMap(({ call, answer }, i) => {
    const other = second[i]
    if (other?.call !== call) return [`${call}\n  was followed by another call: ${other?.call}`]
    if (other.answer === answer) return []
    const at = [...answer].findIndex((char, n) => char !== other.answer[n])
    const around = (text: string): string => text.slice(Math.max(0, at - 150), at + 250)
    return [`${call}\n  ${around(answer)}\n  ${around(other.answer)}`]
  })

everyDatabase(
  'Hidden data',
  (server, database) => {
    // What viewers see does not depend on the database: the embedded one, which is slower, has fewer of them.
    const count = runs(2, database === 'embedded' ? 3 : viewers.length)
    for (const viewer of viewers.slice(0, count))
      it(`what is hidden changes no answer to ${viewer.title}`, async () => {
        const answers: Answer[][] = []
        for (const second of [false, true]) {
          clock = NOON
          const plan = runs(0, 1) === 0 ? createLightPlan(database) : thorough
          const world = await seedTwin(server(), viewer, second)
          answers.push(await recordCalls(server(), world, viewer, plan))
        }
        const differences = findDifferences(answers[0]!, answers[1]!)
        assert.equal(differences.length, 0, differences.slice(0, 20).join('\n\n'))
        assert.equal(answers[0]!.length, answers[1]!.length)
        const successes = answers[0]!.filter(({ answer }) => answer.startsWith('2'))
        const share = successes.length / answers[0]!.length
        assert.ok(share > 0.45, `${share} of the calls are answered, so this proves little`)
      })
  },
  // A count that ran out of time would differ by chance. Twins begin with the same ids, which others have already.
  { now, countTimeBox: 10_000, dedicated: true },
)
