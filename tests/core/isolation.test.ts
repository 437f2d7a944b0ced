import assert from 'node:assert/strict'
import { before, it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { databases } from '../databases.ts'
import { type Door, doorsOf, everyDatabase, type Reply } from '../doors.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import {
  CONTACT_COUNT,
  buildExampleInputs,
  listIdFields,
  getIdValue,
  seedWorld,
  loadWorkspaceRows,
  type World,
} from '../world.ts'

/**
 * Two workspaces with the same kinds of records. Calls with a key of one neither show nor change the other.
 */
type TwoWorlds = { server: TestServer; mine: World; other: World; digits: string }

const isOptional = (op: Operation, field: string): boolean =>
  op.input.shape[field]!.safeParse(undefined).success

const required = (op: Operation, input: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(input).filter(([field]) => !isOptional(op, field)))

/** Returns the smallest valid input, with the ids of this world. */
const buildMinimalInput = (world: World, op: Operation): Record<string, unknown> =>
  required(op, buildExampleInputs(world, op)[0] ?? {})

/** The first example without the fields that name what it is for in one of several ways. */
const withoutTarget = (world: World, op: Operation): Record<string, unknown> => {
  const target = new Set(op.alternatives?.flatMap(({ needs, takes = [] }) => [...needs, ...takes]))
  const input = buildExampleInputs(world, op)[0] ?? {}
  return Object.fromEntries(Object.entries(input).filter(([field]) => !target.has(field)))
}

/** The same with one of several ways to fill it in. */
const buildReadInput = (world: World, op: Operation): Record<string, unknown> =>
  op.alternatives ? buildExampleInputs(world, op)[0]! : buildMinimalInput(world, op)

const withDryRun = (op: Operation, input: Record<string, unknown>) =>
  op.dryRun ? { ...input, dry_run: true } : input

const confirmOf = (op: Operation) => (op.confirm ? { confirm: op.confirm } : {})

/**
 * Returns inputs in which one id belongs to the other workspace. Its owner can send each of them with
 * success; otherwise a refusal would prove nothing.
 */
const buildForeignInputs = async (
  scene: TwoWorlds,
  owner: Door,
  op: Operation,
): Promise<{ field: string; input: Record<string, unknown> }[]> => {
  const cases = []
  for (const field of listIdFields(op)) {
    const value = getIdValue(scene.other, op, field)
    const candidates = [
      ...buildExampleInputs(scene.other, op),
      buildMinimalInput(scene.other, op),
      withoutTarget(scene.other, op),
    ].map((input) => ({ ...input, [field]: value }))
    const replies: string[] = []
    let good: Record<string, unknown> | undefined
    for (const input of candidates) {
      const reply = await owner.call(op.name, withDryRun(op, input))
      if (reply.status < 300) {
        good = input
        break
      }
      replies.push(reply.text)
    }
    assert.ok(
      good,
      `${op.name} with ${field} is refused to its owner: add a valid value to tests/world.ts. ` +
        replies.join('\n'),
    )
    const own =
      buildExampleInputs(scene.mine, op).find((input) =>
        Object.keys(good).every((f) => f === field || f in input),
      ) ?? good
    const mixed = Object.fromEntries(
      Object.entries(good).map(([f, v]) => [f, f === field ? v : (own[f] ?? v)]),
    )
    cases.push({ field, input: mixed }, { field, input: good })
  }
  return cases
}

const assertNothingShown = ({ other, digits }: TwoWorlds, op: Operation, reply: Reply): void => {
  assert.ok(
    !reply.text.toLowerCase().includes(other.marker.toLowerCase()),
    `${op.name} shows the other workspace: ${reply.text}`,
  )
  assert.ok(!reply.text.includes(digits), `${op.name} shows a phone of the other workspace: ${reply.text}`)
}

/**
 * Checks that a call was refused or found nothing. In `tags`, an unknown integer is refused when tags are
 * created and ignored when they are removed.
 */
const assertNothingFound = (
  op: Operation,
  field: string,
  input: unknown,
  { status, body, text }: Reply,
): void => {
  const foundNothing =
    status === 404 ||
    status === 400 ||
    (status < 300 &&
      ((body.failed === body.requested && body.failed > 0) ||
        (Array.isArray(body.data) && body.data.length === 0)))
  assert.ok(
    foundNothing || field === 'tags',
    `${op.name} took ${field} of another workspace: ${JSON.stringify(input)} ${text}`,
  )
}

everyDatabase('Workspace isolation', (server, database) => {
  let scene: TwoWorlds
  before(async () => {
    const [mine, other] = [
      await makeWorkspace(server(), { name: 'Mine' }),
      await makeWorkspace(server(), { name: 'Zyxother' }),
    ]
    scene = {
      server: server(),
      mine: await seedWorld(server(), mine, 'Qwmine', '0100'),
      other: await seedWorld(server(), other, 'Zyxother', '0199'),
      digits: '15550199',
    }
  })

  // The doors differ in how they read a request, which no database changes: one on each.
  for (const index of databases.length === 1 ? [0, 1] : [databases.indexOf(database)]) {
    for (const op of catalog) {
      it(`${op.name} neither shows nor changes another workspace [${['rest', 'ops'][index]}]`, async () => {
        const { other, mine } = scene
        const [me, owner] = [mine, other].map(
          (w) => doorsOf(server().url, w.workspace.owner.key)[index]!,
        ) as [Door, Door]
        if (op.scope === 'mcp:read') {
          const seen = await owner.call(op.name, buildReadInput(other, op))
          assert.equal(seen.status, 200, seen.text)
          // A count covers only the owner's contacts.
          if (op.name === 'crm_count_contacts') assert.equal(seen.body.count, CONTACT_COUNT)
          // A report of members has their ids alone.
          else if (op.name === 'reports_filter_membership') assert.equal(seen.body.entered, CONTACT_COUNT)
          // A delivery contains no marked text.
          else if (op.name === 'webhooks_list_deliveries')
            assert.equal(seen.body.data[0].endpoint_id, other.ids['webhook_endpoints']![0])
          // Lint and the list of event types read no stored data.
          else if (op.name !== 'messaging_lint_template' && op.name !== 'webhooks_list_event_types')
            assert.ok(
              seen.text.toLowerCase().includes('zyxother'),
              `${op.name} shows its owner no marked text, so the test proves nothing: ` +
                `add some to tests/world.ts. ${seen.text}`,
            )
        }
        const cases = await buildForeignInputs(scene, owner, op)
        const rows = await loadWorkspaceRows(server().db, other.workspace.id)
        for (const { field, input } of cases) {
          const reply = await me.call(op.name, input, confirmOf(op))
          assertNothingShown(scene, op, reply)
          assertNothingFound(op, field, input, reply)
        }
        for (const input of [buildMinimalInput(mine, op), ...buildExampleInputs(mine, op)]) {
          const reply = await me.call(op.name, withDryRun(op, input), confirmOf(op))
          assert.notEqual(reply.status, 500, reply.text)
          assertNothingShown(scene, op, reply)
        }
        assert.deepEqual(
          await loadWorkspaceRows(server().db, other.workspace.id),
          rows,
          `${op.name} changed rows of another workspace`,
        )
      })
    }
  }

  for (const op of catalog.filter((o) => 'cursor' in o.input.shape)) {
    it(`${op.name} rejects a cursor of another workspace`, async () => {
      const [me, owner] = [scene.mine, scene.other].map(
        (w) => doorsOf(server().url, w.workspace.owner.key)[1]!,
      ) as [Door, Door]
      const input = { ...buildMinimalInput(scene.other, op), limit: 1 }
      const first = await owner.call(op.name, input)
      assert.ok(first.body.next_cursor, `${op.name} has one page: add rows to tests/world.ts. ${first.text}`)
      const second = await owner.call(op.name, { ...input, cursor: first.body.next_cursor })
      assert.equal(second.status, 200, second.text)
      assert.notDeepEqual(second.body.data, first.body.data)
      const reply = await me.call(op.name, { ...input, cursor: first.body.next_cursor })
      assertNothingShown(scene, op, reply)
      if (listIdFields(op).some((f) => !isOptional(op, f)))
        assert.ok(reply.status === 404 || reply.status === 400, reply.text)
      else assert.deepEqual([reply.status, reply.body.reason], [400, 'cursor_invalid'])
    })
  }

  it('idempotency keys are separate for each workspace', async () => {
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
