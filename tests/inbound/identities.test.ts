import assert from 'node:assert/strict'
import { it } from 'node:test'
import { sql } from 'kysely'
import { createRandom, deriveSeed, pick, type Random, randomInt } from '../../server/demo/random.ts'
import { everyDatabase } from '../doors.ts'
import { propertySeed } from '../level.ts'
import {
  buildWebhookBody,
  createCustomerFixture,
  createWamid,
  postWebhook,
  type WebhookPart,
} from '../provider/webhook-fixture.ts'

/*
 * Histories of customers whose number, user id and username change, as the provider tells them: in messages that name
 * some of what they have, and in notices. All of it arrives in any order, and some of it twice.
 */

type Identity = { phone: string | null; userId: string | null; username: string | null }
/** What an event says of its customer: all of one person. `returns`: to a number or user id of before. */
type Told = { at: number; returns?: boolean; ids: string[]; now: Partial<Identity>; value: WebhookPart }

/**
 * The same ones each time, unless the environment says otherwise: of thousands, one can end with an older number
 * (docs/phones.md).
 */
const HISTORIES = Number(process.env['WCRM_TEST_HISTORIES'] ?? 200)
const SEED = 20_261_001
const START = Math.floor(Date.now() / 1000) - 86_400

const say = (identity: Identity, at: number, random: Random): Told => {
  // At least one of both, and a username only with a user id, as the provider does.
  const named = identity.phone === null ? 'userId' : identity.userId === null ? 'phone' : pick(random, names)
  const phone = named === 'userId' ? null : identity.phone
  const userId = named === 'phone' ? null : identity.userId
  const username = userId === null || random() < 0.3 ? null : identity.username
  return {
    at,
    ids: [phone, userId].flatMap((id) => id ?? []),
    now: { phone, userId, username },
    value: {
      contacts: [
        {
          profile: username === null ? {} : { username },
          ...(phone === null ? {} : { wa_id: phone }),
          ...(userId === null ? {} : { user_id: userId }),
        },
      ],
      messages: [
        {
          ...(phone === null ? {} : { from: phone }),
          ...(userId === null ? {} : { from_user_id: userId }),
          id: createWamid(),
          timestamp: String(START + at),
          type: 'text',
          text: { body: `at ${at}` },
        },
      ],
    },
  }
}
const names = ['phone', 'userId', 'both', 'both'] as const

/** Without the mark of a return: an id that was left shows nothing of whoever has it later. */
const bare = (id: string): string => id.split('~')[0]!

const withoutMarks = ({ now, value, ...rest }: Told): Told => ({
  ...rest,
  ...(JSON.parse(JSON.stringify({ now, value }).replaceAll(/~\d+/g, '')) as Pick<Told, 'now' | 'value'>),
})

/** `returns`: to a number or user id of before, which by then may be another person's: the notice says all. */
const notify = (before: Identity, after: Identity, at: number, random: Random, returns: boolean): Told => {
  const [movesPhone, movesUser] = [before.phone !== after.phone, before.userId !== after.userId]
  // What did not change may stand in the notice or not; of what did, what it was may be missing beside the other.
  const saysFrom =
    before.phone !== null &&
    (returns || before.userId === null || (movesPhone && !movesUser) || random() < 0.6)
  const saysUser = before.userId !== null && (returns || !saysFrom || random() < 0.6)
  const by = pick(random, ['from', 'customer', 'both', ...(saysUser ? [] : ['body'])])
  const kind = !movesPhone
    ? 'user_changed_user_id'
    : pick(random, ['user_changed_number', 'customer_changed_number', 'something_else'])
  const phone = movesPhone ? after.phone : null
  const userId = movesUser ? after.userId : null
  return {
    at,
    returns,
    ids: [saysFrom ? before.phone : null, saysUser ? before.userId : null, phone, userId].flatMap(
      (id) => id ?? [],
    ),
    now: {
      phone: phone ?? (saysFrom ? before.phone : null),
      userId: userId ?? (saysUser ? before.userId : null),
    },
    value: {
      messages: [
        {
          ...(saysFrom && by !== 'customer' && by !== 'body' ? { from: before.phone } : {}),
          id: createWamid(),
          timestamp: String(START + at),
          type: 'system',
          system: {
            type: kind,
            body: `User changed from ${saysFrom ? before.phone : before.userId} to ${phone ?? userId}`,
            ...(saysFrom && (by === 'customer' || by === 'both') ? { customer: before.phone } : {}),
            ...(saysUser ? { previous_user_id: before.userId } : {}),
            ...(phone === null ? {} : { [pick(random, ['wa_id', 'new_wa_id'])]: phone }),
            ...(userId === null ? {} : { user_id: userId }),
          },
        },
      ],
    },
  }
}

/** Whether the events show all that they name to be of one person. */
const isConnected = (events: readonly Told[]): boolean => {
  let rest = events.slice(1)
  const seen = new Set(events[0]!.ids)
  for (let size = -1; size !== rest.length;) {
    size = rest.length
    rest = rest.filter(({ ids }) => {
      if (!ids.some((id) => seen.has(id))) return true
      for (const id of ids) seen.add(id)
      return false
    })
  }
  return rest.length === 0
}

const generate = (random: Random, n: number): Told[] => {
  const own = String(n).padStart(6, '0')
  let serial = 0
  const fresh = {
    phone: () => `49151${own}${serial++ % 10}${1 + randomInt(random, 9)}`,
    userId: () => `${pick(random, ['US', 'BR', 'MX'])}.${own}${serial++}`,
    username: () => `user${own}${serial++}`,
  }
  const shape = random()
  let identity: Identity = {
    phone: shape < 0.8 ? fresh.phone() : null,
    userId: shape > 0.3 ? fresh.userId() : null,
    username: shape > 0.5 ? fresh.username() : null,
  }
  const events: Told[] = []
  const earlier = [identity]
  for (let at = 0, steps = 3 + randomInt(random, 6); steps > 0; steps--, at += 10) {
    const choice = random()
    if (choice < 0.45) events.push(say(identity, at, random))
    else {
      const before = identity
      let returns = false
      const next = (name: 'phone' | 'userId'): string => {
        const past = earlier
          .flatMap((one) => one[name] ?? [])
          .filter((id) => bare(id) !== bare(identity[name]!))
        const former = past.length > 0 && random() < 0.15 ? pick(random, past) : null
        returns ||= former !== null
        return former === null ? fresh[name]() : `${bare(former)}~${at}`
      }
      if (choice < 0.7 && before.phone !== null) identity = { ...identity, phone: next('phone') }
      else if (choice < 0.8 && before.userId !== null) identity = { ...identity, userId: next('userId') }
      else if (choice < 0.9 && before.phone !== null && before.userId !== null)
        identity = { ...identity, phone: next('phone'), userId: next('userId') }
      else if (before.userId !== null) identity = { ...identity, username: fresh.username() }
      earlier.push(identity)
      if (
        (identity.phone !== before.phone || identity.userId !== before.userId) &&
        (returns || random() < 0.8)
      )
        events.push(notify(before, identity, at, random, returns))
    }
  }
  events.push(say(identity, 990, random))
  return events.length > 1 && isConnected(events) ? events.map(withoutMarks) : generate(random, n)
}

/** What the last event that tells each of them says. */
const lastOf = (events: readonly Told[]): Identity => {
  const last: Identity = { phone: null, userId: null, username: null }
  for (const { now } of events.toSorted((a, b) => a.at - b.at))
    for (const name of ['phone', 'userId', 'username'] as const) if (now[name] != null) last[name] = now[name]
  return last
}

/**
 * In the order of arrival: near that of time or not, some again, under the same id or, of notices, another. Or all of
 * one second, in their order, where none has to wait for another. `together`: how many may arrive at once.
 */
const scramble = (events: readonly Told[], random: Random): { arriving: WebhookPart[]; together: number } => {
  const withMessage = (value: WebhookPart, fields: WebhookPart): WebhookPart => ({
    ...value,
    messages: (value['messages'] as WebhookPart[]).map((message) => ({ ...message, ...fields })),
  })
  const isKnownAtOnce =
    events[0]!.value['contacts'] !== undefined && events.every((_, i) => isConnected(events.slice(0, i + 1)))
  if (isKnownAtOnce && random() < 0.4)
    return {
      arriving: events.map(({ value }) => withMessage(value, { timestamp: String(START) })),
      together: 1,
    }
  const spread = events.some(({ returns }) => returns) ? 0 : pick(random, [0, 15, 60, 2000])
  const arriving = events
    .flatMap(({ at, value }) => {
      const isNotice = value['contacts'] === undefined
      const copy = isNotice && random() < 0.5 ? withMessage(value, { id: createWamid() }) : value
      const all = random() < 0.2 ? [value, copy] : [value]
      return all.map((one) => ({ value: one, order: at + random() * spread }))
    })
    .toSorted((a, b) => a.order - b.order)
    .map(({ value }) => value)
  return { arriving, together: 3 }
}

everyDatabase('One person of whom the provider tells anything in any order', (server) => {
  it('is one contact with one open conversation, and has the last number, user id and username', async (t) => {
    const seed = propertySeed ?? SEED
    const scene = await createCustomerFixture(server())
    const histories = Array.from({ length: HISTORIES }, (_, n) => {
      const random = createRandom(deriveSeed(seed, n))
      const events = generate(random, n)
      return { n, events, ...scramble(events, random) }
    })
    const started = performance.now()
    const queues = histories.map(({ arriving, together }) => ({ queue: [...arriving], together }))
    const random = createRandom(deriveSeed(seed, HISTORIES))
    const job = server().app.jobs.job('provider-updates')
    while (queues.some(({ queue }) => queue.length > 0)) {
      const body = queues.flatMap(({ queue, together }) => queue.splice(0, randomInt(random, together + 1)))
      const posted = await postWebhook(server(), buildWebhookBody(scene.account, ...body.map(scene.value)))
      assert.equal(posted.status, 200)
      await job.runOnce()
    }
    // Notices that came before anything else of their customer are tried again.
    for (let i = 0; i < 7; i++) {
      await sql`update provider_updates set next_attempt_at = now() where state = 'waiting'`.execute(
        server().db,
      )
      await job.runOnce()
    }
    t.diagnostic(`${HISTORIES} histories in ${Math.round((performance.now() - started) / 1000)} s`)
    const { rows } = await sql<{ ids: Identity; open: number }>`
      select jsonb_build_object('phone', c.phone, 'userId', c.chatapp_user_id, 'username', c.username) as ids,
        (select count(*)::int from conversations v where v.workspace_id = c.workspace_id and v.contact_id = c.id
          and v.state = 'open') as open
      from contacts c where c.workspace_id = ${scene.workspace.id}`.execute(server().db)
    const byPerson = Map.groupBy(rows, ({ ids }) =>
      Number((ids.phone ?? '').slice(5, 11) || ids.userId!.slice(3, 9)),
    )
    for (const { n, events, arriving } of histories)
      assert.deepEqual(
        (byPerson.get(n) ?? []).map(({ ids, open }) => ({ ...ids, open })),
        [{ ...lastOf(events), open: 1 }],
        `WCRM_TEST_SEED=${seed}, history ${n}:\n${arriving.map((value) => JSON.stringify(value)).join('\n')}`,
      )
    assert.deepEqual([...new Set((await scene.updates()).map(({ state }) => state))], ['done'])
  })
})
