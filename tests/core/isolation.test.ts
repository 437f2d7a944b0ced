import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { type Door, doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { CONTACTS, exampleInputs, idFields, idValue, plant, rowsOf, type World } from '../world.ts'

/**
 * Two workspaces of the same shape. Whatever is asked with a key of the one, the other is neither shown nor
 * changed.
 */
type Scene = { server: TestServer; mine: World; other: World; digits: string }

const operations: readonly Operation[] = catalog
const isOptional = (op: Operation, field: string): boolean =>
  op.input.shape[field]!.safeParse(undefined).success

const required = (op: Operation, input: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([field]) => !isOptional(op, field)))

/** What a reader may ask at least; ids are those of this world. */
const leastInput = (world: World, op: Operation): Record<string, unknown> =>
  required(op, exampleInputs(world, op)[0] ?? {})

const rehearsed = (op: Operation, input: Record<string, unknown>) =>
  op.dryRun ? { ...input, dry_run: true } : input

const confirmOf = (op: Operation) => (op.confirm ? { confirm: op.confirm } : {})

/**
 * Inputs in which one id is the other's. Each is one that its owner may really send, or the refusal would
 * prove nothing.
 */
const foreignInputs = async (
  scene: Scene,
  owner: Door,
  op: Operation,
): Promise<{ field: string; input: Record<string, unknown> }[]> => {
  const cases = []
  for (const field of idFields(op)) {
    const value = idValue(scene.other, op, field)
    const tries = [...exampleInputs(scene.other, op), leastInput(scene.other, op)].map((input) => ({
      ...input,
      [field]: value,
    }))
    const replies: string[] = []
    let good: Record<string, unknown> | undefined
    for (const input of tries) {
      const reply = await owner.call(op.name, rehearsed(op, input))
      if (reply.status < 300) {
        good = input
        break
      }
      replies.push(reply.text)
    }
    assert.ok(
      good,
      `${op.name} with ${field} is refused to its owner: teach tests/world.ts a good value. ${replies.join('\n')}`,
    )
    const own =
      exampleInputs(scene.mine, op).find((input) =>
        Object.keys(good).every((f) => f === field || f in input),
      ) ?? good
    const blended = Object.fromEntries(
      Object.entries(good).map(([f, v]) => [f, f === field ? v : (own[f] ?? v)]),
    )
    cases.push({ field, input: blended }, { field, input: good })
  }
  return cases
}

const assertSilent = ({ other, digits }: Scene, op: Operation, reply: Reply): void => {
  assert.ok(
    !reply.text.toLowerCase().includes(other.marker.toLowerCase()),
    `${op.name} shows the other workspace: ${reply.text}`,
  )
  assert.ok(!reply.text.includes(digits), `${op.name} shows a phone of the other workspace: ${reply.text}`)
}

/**
 * Refused, or nothing found. Among `tags` an unknown integer is refused where tags are made and ignored
 * where they are removed.
 */
const assertNothingFound = (
  op: Operation,
  field: string,
  input: unknown,
  { status, body, text }: Reply,
): void => {
  const nothing =
    status === 404 ||
    status === 400 ||
    (status < 300 &&
      ((body.failed === body.requested && body.failed > 0) ||
        (Array.isArray(body.data) && body.data.length === 0)))
  assert.ok(
    nothing || field === 'tags',
    `${op.name} took ${field} of another workspace: ${JSON.stringify(input)} ${text}`,
  )
}

everyDatabase('Workspaces are apart', (server) => {
  let scene: Scene
  before(async () => {
    const [mine, other] = [
      await makeWorkspace(server(), { name: 'Mine' }),
      await makeWorkspace(server(), { name: 'Zyxother' }),
    ]
    scene = {
      server: server(),
      mine: await plant(server(), mine, 'Qwmine', '0100'),
      other: await plant(server(), other, 'Zyxother', '0199'),
      digits: '15550199',
    }
  })

  for (const index of [0, 1]) {
    for (const op of operations) {
      it(`${op.name} [${['rest', 'ops'][index]}]`, async () => {
        const { other, mine } = scene
        const [me, owner] = [mine, other].map(
          (w) => doorsOf(server().url, w.workspace.owner.key)[index]!,
        ) as [Door, Door]
        if (op.scope === 'mcp:read') {
          const seen = await owner.call(op.name, leastInput(other, op))
          assert.equal(seen.status, 200, seen.text)
          // A number is of one's own contacts alone.
          if (op.name === 'crm_count_contacts') assert.equal(seen.body.count, CONTACTS)
          // A delivery has no text of its own.
          else if (op.name === 'webhooks_list_deliveries')
            assert.equal(seen.body.data[0].endpoint_id, other.ids['webhook_endpoints']![0])
          // Lint and the list of event types read nothing that is kept.
          else if (op.name !== 'messaging_lint_template' && op.name !== 'webhooks_list_event_types')
            assert.ok(
              seen.text.toLowerCase().includes('zyxother'),
              `${op.name} shows its owner nothing marked, so nothing can be missed: plant it in tests/world.ts. ${seen.text}`,
            )
        }
        const cases = await foreignInputs(scene, owner, op)
        const rows = await rowsOf(server().db, other.workspace.id)
        for (const { field, input } of cases) {
          const reply = await me.call(op.name, input, confirmOf(op))
          assertSilent(scene, op, reply)
          assertNothingFound(op, field, input, reply)
        }
        for (const input of [leastInput(mine, op), ...exampleInputs(mine, op)]) {
          const reply = await me.call(op.name, rehearsed(op, input), confirmOf(op))
          assert.notEqual(reply.status, 500, reply.text)
          assertSilent(scene, op, reply)
        }
        assert.deepEqual(
          await rowsOf(server().db, other.workspace.id),
          rows,
          `${op.name} changed rows of another workspace`,
        )
      })
    }
  }

  for (const op of operations.filter((o) => 'cursor' in o.input.shape)) {
    it(`${op.name} takes no cursor of another workspace`, async () => {
      const [me, owner] = [scene.mine, scene.other].map(
        (w) => doorsOf(server().url, w.workspace.owner.key)[1]!,
      ) as [Door, Door]
      const input = { ...leastInput(scene.other, op), limit: 1 }
      const first = await owner.call(op.name, input)
      assert.ok(
        first.body.next_cursor,
        `${op.name} has one page: plant more in tests/world.ts. ${first.text}`,
      )
      const second = await owner.call(op.name, { ...input, cursor: first.body.next_cursor })
      assert.equal(second.status, 200, second.text)
      assert.notDeepEqual(second.body.data, first.body.data)
      const reply = await me.call(op.name, { ...input, cursor: first.body.next_cursor })
      assertSilent(scene, op, reply)
      if (idFields(op).some((f) => !isOptional(op, f)))
        assert.ok(reply.status === 404 || reply.status === 400, reply.text)
      else assert.deepEqual([reply.status, reply.body.reason], [400, 'cursor_invalid'])
    })
  }

  it('an idempotency key means another request in another workspace', async () => {
    const call = async (world: World) =>
      await doorsOf(server().url, world.workspace.owner.key)[0]!.call(
        'crm_create_group',
        { name: `${world.marker} by one key` },
        { idempotencyKey: 'the-same-in-both' },
      )
    for (const world of [scene.mine, scene.other]) {
      const reply = await call(world)
      assert.equal(reply.status, 200, reply.text)
      assert.equal(reply.headers['idempotent-replayed'], undefined)
      assert.equal(reply.body.group.name, `${world.marker} by one key`)
      assert.equal((await call(world)).headers['idempotent-replayed'], 'true')
    }
  })
})
