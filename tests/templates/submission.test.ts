import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { sql } from 'kysely'
import { currentVersion, scopes } from '../../catalog/index.ts'
import { hashApiKey, createApiKey } from '../../server/api-keys.ts'
import { resolveProviderSettings } from '../../server/provider/settings.ts'
import { reconcileProviderCalls } from '../../server/jobs/reconcile.ts'
import { createChannel, createKey, createStaff, createWorkspace } from '../../storage/admin.ts'
import { type Location, migrate } from '../../storage/open.ts'
import { callAs, doAs } from '../calls.ts'
import { everyDatabase } from '../doors.ts'
import { type ServerProcess, startCommand, startProcess } from '../process.ts'
import { refusal } from '../messaging/sends.ts'
import { makeWorkspace, type TestServer } from '../servers.ts'
import { atProvider, order } from './drafts.ts'
import { createEmptyDatabase, databases, withStorage } from '../databases.ts'

const submit = { confirm: 'submit' }

/** The sandbox's own side, for what workspaces cannot ask of it. */
const control = async <T>(
  server: Pick<TestServer, 'url'>,
  method: string,
  path: string,
  body?: object,
): Promise<T> => {
  const { baseUrl, token } = resolveProviderSettings({}, 'a secret of at least sixteen', server.url)
  const response = await fetch(`${baseUrl}/control/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  const text = await response.text()
  assert.ok(response.ok, text)
  return JSON.parse(text) as T
}

everyDatabase('A template whose answer was lost', (server) => {
  const scene = async () => {
    const workspace = await makeWorkspace(server())
    const call = callAs(server(), workspace.owner.key)
    const key = (name: string) => `${name}-template-${workspace.id}`
    const sandbox = atProvider(server(), workspace)
    return {
      workspace,
      call,
      sandbox,
      run: doAs(server(), workspace.owner.key),
      key,
      create: (name = 'lost') =>
        call('messaging_create_template', { template: order }, { ...submit, idempotencyKey: key(name) }),
      update: (id: string, template: object) =>
        call(
          'messaging_update_template',
          { template_id: id, template },
          { ...submit, idempotencyKey: key('change') },
        ),
      events: async () =>
        (
          await server()
            .db.selectFrom('events')
            .select('type')
            .where('workspace_id', '=', workspace.id)
            .orderBy('id')
            .execute()
        ).map(({ type }) => type),
      lose: () => sandbox.fault({ drop_answer: true }),
    }
  }

  it('is submitted once, and its name is kept meanwhile', async () => {
    const { create, run, sandbox, events, lose } = await scene()
    await lose()
    const lost = await create()
    assert.deepEqual([lost.status, lost.body.code], [504, 'timeout'])
    const [kept] = (await run('messaging_list_templates')).data
    assert.deepEqual([kept.name, kept.status, await events()], [order.name, 'SUBMITTING', []])
    assert.deepEqual(refusal(await create('another')), [409, 'conflict', 'duplicate'])
    const made = await create()
    assert.deepEqual([made.status, made.body.id, made.body.status], [201, kept.id, 'PENDING'], made.text)
    const held = await sandbox.templates()
    assert.deepEqual(
      [held.length, JSON.stringify(held[0]!.components), await events()],
      [1, JSON.stringify(made.body.payload_preview), ['template.submitted/1']],
    )
    assert.equal((await create()).text, made.text)
  })

  it('is submitted once by a worker when nobody asks again', async () => {
    const { create, sandbox, lose } = await scene()
    await lose()
    assert.equal((await create()).status, 504)
    await reconcileProviderCalls(server().app)
    const reply = await create()
    assert.deepEqual(
      [reply.status, reply.headers['idempotent-replayed'], (await sandbox.templates()).length],
      [201, 'true', 1],
    )
  })

  it('keeps what a review came to in between', async () => {
    const { create, run, sandbox, events, lose } = await scene()
    await lose()
    assert.equal((await create()).status, 504)
    await control(server(), 'POST', 'review', {
      template_id: (await sandbox.templates())[0]!.id,
      decision: 'reject',
      reason: 'Say who writes.',
    })
    await server().settle()
    assert.equal((await run('messaging_list_templates')).data[0].status, 'REJECTED')
    const made = await create()
    assert.deepEqual([made.status, made.body.status], [201, 'REJECTED'])
    const shown = await run('messaging_get_template', { template_id: made.body.id })
    assert.deepEqual(
      [shown.status, shown.rejection_reason, await events()],
      ['REJECTED', 'Say who writes.', ['template.status_changed/1', 'template.submitted/1']],
    )
  })

  it('is submitted anew when it never arrived', async () => {
    const { create, sandbox } = await scene()
    await sandbox.fault({ code: 2 })
    assert.equal((await create()).status, 503)
    assert.equal((await sandbox.templates()).length, 0)
    assert.equal((await create()).status, 201)
    assert.equal((await sandbox.templates()).length, 1)
  })

  it('waits while the provider cannot be asked', async () => {
    const { create, sandbox, run, lose } = await scene()
    await lose()
    assert.equal((await create()).status, 504)
    await sandbox.fault({ code: 190 })
    const reply = await create()
    assert.deepEqual([reply.status, reply.body.code], [503, 'upstream_unavailable'])
    assert.equal((await run('messaging_list_templates')).data[0].status, 'SUBMITTING')
    assert.equal((await create()).status, 201)
    assert.equal((await sandbox.templates()).length, 1)
  })

  it('is not taken for another one that holds the name', async () => {
    const { workspace, create, run, sandbox } = await scene()
    await sandbox.fault({ code: 2 })
    assert.equal((await create()).status, 503)
    await control(server(), 'PUT', 'templates', {
      templates: [
        {
          account_id: `77${workspace.id}`,
          name: order.name,
          language: 'en_US',
          components: [{ type: 'BODY', text: 'Somebody else wrote this.' }],
        },
      ],
    })
    assert.deepEqual(refusal(await create()), [409, 'conflict', 'duplicate'])
    assert.deepEqual(
      [(await run('messaging_list_templates')).data, (await sandbox.templates()).length],
      [[], 1],
    )
  })

  it('when changed is changed once', async () => {
    const { create, run, update, sandbox, events, lose } = await scene()
    const {
      body: { id },
    } = await create()
    await sandbox.review(id, 'approve')
    const changed = { ...order, footer: { text: 'Thanks' } }
    await lose()
    assert.equal((await update(id, changed)).status, 504)
    // The provider refuses to change what is in review, so a second call would fail.
    const done = await update(id, changed)
    assert.deepEqual(
      [done.status, done.body.status, (await sandbox.templates())[0]!.status],
      [200, 'PENDING', 'PENDING'],
      done.text,
    )
    assert.deepEqual(
      [(await run('messaging_get_template', { template_id: id })).footer, (await events()).at(-1)],
      ['Thanks', 'template.submitted/1'],
    )
  })

  it('when changed is changed anew if that never arrived', async () => {
    const { create, update, sandbox } = await scene()
    const {
      body: { id },
    } = await create()
    await sandbox.review(id, 'approve')
    const changed = { ...order, body: { ...order.body, examples: ['Grace', '18'] } }
    await sandbox.fault({ code: 2 })
    assert.equal((await update(id, changed)).status, 503)
    const done = await update(id, changed)
    assert.equal(done.status, 200, done.text)
    assert.equal(
      JSON.stringify((await sandbox.templates())[0]!.components),
      JSON.stringify(done.body.payload_preview),
    )
  })

  it('when handed in unchanged is reviewed once more', async () => {
    const { create, update, sandbox, lose } = await scene()
    const {
      body: { id },
    } = await create()
    for (const fault of [lose, () => sandbox.fault({ code: 2 })]) {
      await sandbox.review(id, 'reject', `Before ${fault.name}`)
      await server()
        .db.deleteFrom('idempotency')
        .where('operation', '=', 'messaging_update_template')
        .execute()
      await fault()
      assert.ok((await update(id, order)).status >= 503)
      assert.equal((await update(id, order)).status, 200)
      assert.equal((await sandbox.templates())[0]!.status, 'PENDING')
    }
  })
})

type Held = { name: string; status: string }

/**
 * Stands between a server and the provider; holds the next change of templates back, before it is passed on
 * or when its answer has come.
 */
const startProxy = async (target: string) => {
  let hold: { when: 'before' | 'after'; reached: () => void } | undefined
  const server: Server = createServer(
    (request, response) =>
      void (async () => {
        const chunks: Buffer[] = []
        for await (const chunk of request) chunks.push(chunk as Buffer)
        const held = request.method === 'POST' && hold ? hold : undefined
        if (held) hold = undefined
        if (held?.when === 'before') return held.reached()
        const answer = await fetch(target + request.url!, {
          method: request.method!,
          headers: {
            Authorization: request.headers.authorization ?? '',
            'Content-Type': request.headers['content-type'] ?? 'application/json',
          },
          ...(chunks.length > 0 ? { body: Buffer.concat(chunks) } : {}),
        })
        const text = await answer.text()
        if (held) return held.reached()
        response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text)
      })(),
  )
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold: (when: 'before' | 'after') =>
      new Promise<void>((reached) => {
        hold = { when, reached }
      }),
    close: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

const ACCOUNT = '77'

const prepare = (location: Location) =>
  withStorage(location, async ({ db }) => {
    await migrate(db)
    const now = new Date().toISOString()
    const { id: workspaceId } = await createWorkspace(db, { name: 'Killed' }, now)
    const staff = await createStaff(db, workspaceId, { name: 'Owner', role: 'owner' }, [], now)
    await createChannel(
      db,
      workspaceId,
      {
        type: 'chatapp',
        name: 'Line',
        identifier: '15550100001',
        status: 'connected',
        is_default: true,
        account_id: ACCOUNT,
        provider_phone_number_id: '8801',
      },
      now,
    )
    const key = createApiKey(false)
    await createKey(
      db,
      workspaceId,
      hashApiKey(key),
      { staff_id: staff.id, scopes: [...scopes], api_version: currentVersion },
      now,
    )
    return { key, workspaceId }
  })

describe('A server killed while it hands in templates', { concurrency: true }, () => {
  for (const database of databases)
    it(`hands in each of them once (${database})`, { timeout: 200_000 }, async () => {
      const place = await createEmptyDatabase(database)
      const folder = mkdtempSync(join(tmpdir(), 'wcrm-sandbox-'))
      const running: { kill: (signal: NodeJS.Signals) => Promise<void> }[] = []
      let proxy: Awaited<ReturnType<typeof startProxy>> | undefined
      try {
        const { key, workspaceId } = await prepare(place.location)
        const sandbox = await startCommand<{ token: string; app_secret: string; verify_token: string }>([
          'sandbox',
          'serve',
          '--port',
          '0',
          '--data',
          folder,
          '--json',
        ])
        running.push(sandbox)
        const { token, app_secret, verify_token } = sandbox.said
        const held = async (): Promise<Held[]> =>
          (
            (await (
              await fetch(`${sandbox.url}/control/templates`, {
                headers: { Authorization: `Bearer ${token}` },
              })
            ).json()) as { data: Held[] }
          ).data
        const through = (proxy = await startProxy(sandbox.url))
        const start = async (): Promise<ServerProcess> => {
          const server = await startProcess(place.flags, {
            WCRM_PROVIDER_URL: through.url,
            WCRM_PROVIDER_TOKEN: token,
            WCRM_PROVIDER_APP_SECRET: app_secret,
            WCRM_PROVIDER_VERIFY_TOKEN: verify_token,
          })
          running.push(server)
          // This has the server tell the sandbox its number.
          assert.equal(
            (await fetch(`${server.url}/sandbox/templates`, { headers: { Authorization: `Bearer ${key}` } }))
              .status,
            200,
          )
          return server
        }
        const create = async (url: string, name: string) => {
          const response = await fetch(`${url}/v1/templates`, {
            method: 'POST',
            body: JSON.stringify({ template: { ...order, name } }),
            headers: {
              Authorization: `Bearer ${key}`,
              'Content-Type': 'application/json',
              'Api-Confirm': 'submit',
              'Idempotency-Key': `killed-at-${name}`,
            },
          })
          return {
            status: response.status,
            body: (await response.json()) as { id: string; status: string; payload_preview: unknown },
          }
        }
        let server = await start()
        for (const when of ['after', 'before'] as const) {
          const reached = through.hold(when)
          const cut = create(server.url, when).catch(() => 'cut off')
          await reached
          assert.deepEqual(
            (await held()).filter(({ name }) => name === when).length,
            when === 'after' ? 1 : 0,
          )
          await server.kill('SIGKILL')
          assert.equal(await cut, 'cut off')
          // As if the half minute of the dead server's lease had passed.
          await withStorage(place.location, async ({ db }) => {
            await sql`update idempotency set lease_until = clock_timestamp() where workspace_id = ${workspaceId} and state = 'running'`.execute(
              db,
            )
          })
          server = await start()
          let reply = await create(server.url, when)
          // A worker of the new server may be at it.
          for (; reply.status === 409; reply = await create(server.url, when)) await pause(100)
          assert.equal(reply.status, 201, JSON.stringify(reply.body))
          assert.equal((await held()).filter(({ name }) => name === when).length, 1)
          assert.equal((await create(server.url, when)).body.id, reply.body.id)
        }
        await server.kill('SIGTERM')
        await withStorage(place.location, async ({ db }) => {
          const rows = await db
            .selectFrom('templates')
            .select(['name', 'provider_id'])
            .where('workspace_id', '=', workspaceId)
            .orderBy('id')
            .execute()
          assert.deepEqual(
            rows.map(({ name, provider_id }) => [name, provider_id !== null]),
            [
              ['after', true],
              ['before', true],
            ],
          )
          const events = await db
            .selectFrom('events')
            .select('type')
            .where('workspace_id', '=', workspaceId)
            .where('type', '=', 'template.submitted/1')
            .execute()
          assert.equal(events.length, 2)
        })
      } finally {
        for (const process of running) await process.kill('SIGKILL')
        await proxy?.close()
        await place.remove()
        rmSync(folder, { recursive: true, force: true })
      }
    })
})
