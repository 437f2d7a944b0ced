import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { type WindowFacts, toWindow } from '../../server/domains/inbox/window.ts'
import { doAs } from '../calls.ts'
import { receiveMessage, inChangeContext, plantConversation } from './conversations.ts'
import { everyDatabase } from '../doors.ts'
import { applyWindowCorrection } from '../../server/domains/inbox/lifecycle.ts'
import { createChannel } from '../../storage/workspace/admin.ts'
import { lockConversation } from '../../storage/conversations/conversations.ts'
import { makeWorkspace } from '../servers.ts'

const HOUR = 3_600_000
const START = Date.UTC(2026, 9, 1, 9, 30)
const at = (ms: number): string => new Date(START + ms).toISOString()

const facts = (type: string | null, more: Partial<WindowFacts> = {}): WindowFacts => ({
  channel_id: '1',
  channel_type: type,
  last_inbound_at: null,
  free_entry_at: null,
  window_corrected_at: null,
  ...more,
})

const open = (kind: string, closes: number) => ({
  applies: true,
  open: true,
  kind,
  closes_at: at(closes),
  closed_at: null,
  reason: null,
})
const closed = (kind: string | null, when: number | null, reason: string) => ({
  applies: true,
  open: false,
  kind,
  closes_at: null,
  closed_at: when === null ? null : at(when),
  reason,
})

/** How many hours a customer's message keeps the window open, from the specification. */
const spans = [
  ['chatapp', 'service', 24],
  ['photoapp', 'standard', 24],
  ['socialchat', 'standard', 24],
  ['videoapp', 'videoapp', 48],
] as const

describe('The reply window', () => {
  for (const [type, kind, hours] of spans) {
    const withMessage = facts(type, { last_inbound_at: at(0) })
    const end = hours * HOUR
    it(`${type}: open for ${hours} hours, to the millisecond`, () => {
      assert.deepEqual(toWindow(facts(type), at(0)), closed(kind, null, 'never_opened'))
      for (const now of [0, 1, end - 1])
        assert.deepEqual(toWindow(withMessage, at(now)), open(kind, end), String(now))
      for (const now of [end, end + 1, 100 * end])
        assert.deepEqual(toWindow(withMessage, at(now)), closed(kind, end, 'expired'), String(now))
    })
  }

  it('after an ad: 72 hours on chatapp only', () => {
    const ad = { last_inbound_at: at(0), free_entry_at: at(0) }
    for (const now of [0, 24 * HOUR, 72 * HOUR - 1])
      assert.deepEqual(toWindow(facts('chatapp', ad), at(now)), open('free_entry', 72 * HOUR))
    assert.deepEqual(
      toWindow(facts('chatapp', ad), at(72 * HOUR)),
      closed('free_entry', 72 * HOUR, 'expired'),
    )
    for (const [type, kind, hours] of spans.slice(1))
      assert.deepEqual(toWindow(facts(type, ad), at(hours * HOUR)), closed(kind, hours * HOUR, 'expired'))
  })

  it('the window that closes last applies', () => {
    const late = facts('chatapp', { free_entry_at: at(0), last_inbound_at: at(60 * HOUR) })
    assert.deepEqual(toWindow(late, at(61 * HOUR)), open('service', 84 * HOUR))
    const early = facts('chatapp', { free_entry_at: at(0), last_inbound_at: at(47 * HOUR) })
    assert.deepEqual(toWindow(early, at(61 * HOUR)), open('free_entry', 72 * HOUR))
    // When both end at the same time it is the service window.
    assert.deepEqual(
      toWindow(facts('chatapp', { free_entry_at: at(0), last_inbound_at: at(48 * HOUR) }), at(61 * HOUR)),
      open('service', 72 * HOUR),
    )
  })

  it('does not apply to other channel types; no_window without a channel', () => {
    assert.deepEqual(toWindow(facts('web'), at(0)), {
      applies: false,
      open: true,
      kind: 'web',
      closes_at: null,
      closed_at: null,
      reason: null,
    })
    for (const type of ['email', 'sms', 'messengerapp', 'anything']) {
      assert.deepEqual(toWindow(facts(type, { last_inbound_at: at(0) }), at(99 * HOUR)), {
        applies: false,
        open: true,
        kind: null,
        closes_at: null,
        closed_at: null,
        reason: null,
      })
    }
    for (const withoutChannel of [
      facts(null, { last_inbound_at: at(0) }),
      { ...facts('chatapp', { last_inbound_at: at(0) }), channel_id: null },
    ])
      assert.deepEqual(toWindow(withoutChannel, at(1)), closed(null, null, 'no_window'))
  })

  it('a correction by the provider closes it until the next inbound message', () => {
    const corrected = facts('chatapp', { last_inbound_at: at(0), window_corrected_at: at(HOUR) })
    assert.deepEqual(toWindow(corrected, at(HOUR)), closed('service', HOUR, 'expired'))
    assert.deepEqual(
      toWindow({ ...corrected, last_inbound_at: at(2 * HOUR) }, at(2 * HOUR)),
      open('service', 26 * HOUR),
    )
    // An expired window was closed when it expired, not by the later correction.
    assert.deepEqual(
      toWindow({ ...corrected, window_corrected_at: at(30 * HOUR) }, at(31 * HOUR)),
      closed('service', 24 * HOUR, 'expired'),
    )
  })

  const hours = fc.integer({ min: -100 * HOUR, max: 200 * HOUR })
  const time = fc.option(hours.map(at), { nil: null })
  const anyFacts = fc.record({
    channel_id: fc.constantFrom('1', '1', '1', null),
    channel_type: fc.constantFrom('chatapp', 'photoapp', 'socialchat', 'videoapp', 'web', 'email', null),
    last_inbound_at: time,
    free_entry_at: time,
    window_corrected_at: time,
  })

  it('is always either open with a future end, or closed with a reason', () => {
    fc.assert(
      fc.property(anyFacts, hours.map(at), (given, now) => {
        const window = toWindow(given, now)
        if (window.open) {
          assert.equal(window.reason, null)
          assert.equal(window.closed_at, null)
          assert.equal(window.closes_at !== null, window.applies)
          if (window.closes_at !== null) assert.ok(window.closes_at > now)
        } else {
          assert.ok(window.applies)
          assert.equal(window.closes_at, null)
          assert.equal(window.closed_at !== null, window.reason === 'expired')
          if (window.closed_at !== null) assert.ok(window.closed_at <= now)
          assert.equal(
            window.reason === 'never_opened',
            given.channel_id !== null && given.channel_type !== null && given.last_inbound_at === null,
          )
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('a closed window stays the same until the next message', () => {
    fc.assert(
      fc.property(anyFacts, hours, fc.nat(1000 * HOUR), (given, now, later) => {
        const [before, after] = [toWindow(given, at(now)), toWindow(given, at(now + later))]
        if (!before.open) assert.deepEqual(after, before)
        else if (!after.open) assert.equal(after.closed_at, before.closes_at)
        else assert.deepEqual(after, before)
      }),
      { numRuns: 2000 },
    )
  })

  it('a later message never closes it sooner', () => {
    fc.assert(
      fc.property(anyFacts, hours, fc.nat(300 * HOUR), hours.map(at), (given, written, later, now) => {
        const [one, two] = [written, written + later].map((ms) =>
          toWindow({ ...given, last_inbound_at: at(ms) }, now),
        )
        if (one!.open) assert.ok(two!.open)
      }),
      { numRuns: 2000 },
    )
  })
})

let clock = START
everyDatabase(
  'The reply window of a conversation',
  (server) => {
    it('follows from its messages, its channel and the clock of the server', async () => {
      clock = START
      const workspace = await makeWorkspace(server())
      const run = doAs(server(), workspace.owner.key)
      const windowAt = async (id: string, ms: number) => {
        clock = START + ms
        const alone = await run('inbox_get_conversation', { conversation_id: id })
        const { data } = await run('inbox_search_conversations', { limit: 100 })
        assert.deepEqual(data.find((row: { id: string }) => row.id === id).window, alone.window)
        return alone.window
      }
      for (const [type, kind, hours] of spans) {
        const channel = await createChannel(
          server().db,
          workspace.id,
          { type, name: type, status: 'connected' },
          at(0),
        )
        const { id } = await plantConversation(server(), workspace.id, {
          channelId: channel.id,
          inboundAt: at(0),
        })
        assert.deepEqual(await windowAt(id, hours * HOUR - 1), open(kind, hours * HOUR))
        assert.deepEqual(await windowAt(id, hours * HOUR), closed(kind, hours * HOUR, 'expired'))
        await receiveMessage(server(), workspace.id, id, { at: at(100 * HOUR) })
        assert.deepEqual(await windowAt(id, 100 * HOUR), open(kind, (100 + hours) * HOUR))
        // A message that arrives late does not shorten the window.
        await receiveMessage(server(), workspace.id, id, { at: at(50 * HOUR), arrivedAt: at(101 * HOUR) })
        assert.deepEqual(await windowAt(id, 101 * HOUR), open(kind, (100 + hours) * HOUR))
      }
      clock = START
      const { id } = await plantConversation(server(), workspace.id, { inboundAt: null })
      assert.deepEqual(await windowAt(id, 0), closed('service', null, 'never_opened'))
      await receiveMessage(server(), workspace.id, id, { at: at(0), ad: true })
      assert.deepEqual(await windowAt(id, 71 * HOUR), open('free_entry', 72 * HOUR))
      await inChangeContext(server(), workspace.id, at(71 * HOUR), async (context) => {
        const conversation = (await lockConversation(context.tx, workspace.id, id))!
        await applyWindowCorrection(context, conversation, at(70 * HOUR))
        // A report about an earlier message that comes later.
        await applyWindowCorrection(context, conversation, at(-HOUR))
      })
      assert.deepEqual(await windowAt(id, 71 * HOUR), closed('free_entry', 70 * HOUR, 'expired'))
    })
  },
  { now: () => new Date(clock).toISOString() },
)
