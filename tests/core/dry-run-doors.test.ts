import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { catalog, type Operation } from '../../catalog/index.ts'
import { doorsOf, everyDatabase } from '../doors.ts'
import { assertProblem } from '../problems.ts'
import { makeWorkspace } from '../servers.ts'
import { buildExampleInputs, loadWorkspaceRows, seedWorld, withoutPlans } from '../world.ts'

const writes: readonly Operation[] = catalog.filter((op) => op.dryRun)

/** What lets a change run at once, if its dry run is overlooked. */
const licences = (op: Operation): { idempotencyKey: string; confirm?: string } => ({
  idempotencyKey: randomUUID(),
  ...(op.confirm ? { confirm: op.confirm } : {}),
})

everyDatabase('A dry run, however it is asked for', (server) => {
  /** Calls `/v1/ops` with a query beside the body. */
  const callOps = async (op: Operation, key: string, query: string, body: object, more: object = {}) => {
    const { idempotencyKey, confirm } = licences(op)
    const response = await fetch(`${server().url}/v1/ops/${op.name}${query}`, {
      method: 'POST',
      headers: {
        Authorization: `Bearer ${key}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': idempotencyKey,
        ...(confirm ? { 'Api-Confirm': confirm } : {}),
        ...more,
      },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    return {
      status: response.status,
      text,
      body: JSON.parse(text),
      headers: Object.fromEntries(response.headers),
    }
  }

  it('changes nothing, on every door and for every operation', async () => {
    const workspace = await makeWorkspace(server())
    const world = await seedWorld(server(), workspace, 'Asked', '0126')
    const { key } = workspace.owner
    const testKey = (await workspace.key(workspace.owner.staffId, { test: true })).key
    const rows = await loadWorkspaceRows(server().db, workspace.id)
    for (const op of writes) {
      const [input = {}] = buildExampleInputs(world, op)
      const replies = [
        ...(await Promise.all(
          doorsOf(server().url, key).map((door) =>
            door.call(op.name, { ...input, dry_run: true }, licences(op)),
          ),
        )),
        await callOps(op, key, '?dry_run=true', input),
        await callOps(op, key, '?dry_run=true', { ...input, dry_run: true }),
        await callOps(op, testKey, '', input),
        await callOps(op, testKey, '', { ...input, dry_run: false }),
      ]
      for (const reply of replies) {
        assert.ok(reply.status < 300, `${op.name}: ${reply.text}`)
        assert.equal(reply.body.dry_run, true, `${op.name}: ${reply.text}`)
      }
      for (const [query, dry_run] of [
        ['?dry_run=true', false],
        ['?dry_run=false', true],
        ['?dry_run=true', null],
      ] as const) {
        const refused = await callOps(op, key, query, { ...input, dry_run })
        assertProblem(refused, server().url)
        assert.deepEqual(
          [
            refused.status,
            refused.body.reason,
            refused.body.errors.map((e: any) => e.parameter ?? e.pointer),
          ],
          [400, 'contradiction', ['dry_run', '#/dry_run']],
        )
      }
      for (const query of [
        '?dry_run=yes',
        '?dry_run=',
        '?dry_run=true&dry_run=true',
        '?dry-run=true',
        '?dryRun=true',
      ]) {
        const refused = await callOps(op, key, query, input)
        assert.equal(refused.status, 400, `${op.name}${query}: ${refused.text}`)
        assert.ok(refused.body.errors[0].parameter, refused.text)
      }
    }
    assert.deepEqual(withoutPlans(await loadWorkspaceRows(server().db, workspace.id)), withoutPlans(rows))
  })

  it('in the URL of /mcp it is refused, as is every unknown parameter there', async () => {
    const { owner } = await makeWorkspace(server())
    for (const query of ['?dry_run=true', '?toolsets=all&dry-run', '?read_only=true']) {
      const response = await fetch(`${server().url}/mcp${query}`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${owner.key}`, 'Content-Type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      })
      assert.equal(response.status, 400, query)
      assert.equal(((await response.json()) as { code: string }).code, 'invalid_input')
    }
  })

  it('a key or verb that a header and the body give differently is refused, naming both', async () => {
    const workspace = await makeWorkspace(server())
    const { key } = workspace.owner
    const [create, remove] = ['crm_create_group', 'crm_delete_group'].map((name) =>
      writes.find((op) => op.name === name)!,
    ) as [Operation, Operation]
    const given = { name: 'Once' }
    const differing = await callOps(create, key, '', { ...given, idempotency_key: 'another-key' })
    assertProblem(differing, server().url)
    assert.match(differing.body.detail, /header Idempotency-Key and idempotency_key in the body differ/)
    const same = { 'Idempotency-Key': '"quoted-key-1"' }
    const made = await callOps(create, key, '', { ...given, idempotency_key: 'quoted-key-1' }, same)
    assert.deepEqual([made.status, made.headers['idempotency-key']], [200, 'quoted-key-1'])
    const group = { group_id: made.body.group.id }
    const unsure = await callOps(remove, key, '', { ...group, confirm: 'send' })
    assert.deepEqual([unsure.status, unsure.body.reason], [400, 'contradiction'])
    const sure = await callOps(remove, key, '', { ...group, confirm: 'DELETE' })
    assert.equal(sure.status, 200)
  })

  it('a field of the path is refused in the query', async () => {
    const { owner } = await makeWorkspace(server())
    const response = await fetch(`${server().url}/v1/contacts/7?contact_id=8`, {
      headers: { Authorization: `Bearer ${owner.key}` },
    })
    const { errors } = (await response.json()) as { errors: object[] }
    assert.deepEqual(
      [response.status, errors],
      [
        400,
        [
          {
            parameter: 'contact_id',
            code: 'misplaced_field',
            detail: 'belongs in the path',
            fix: 'Remove it from the query.',
          },
        ],
      ],
    )
  })
})
