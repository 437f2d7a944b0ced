import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { it } from 'node:test'
import { doAs } from '../calls.ts'
import { runCli } from '../doors.ts'
import { plantConversation, sendReply } from '../inbox/conversations.ts'
import { makeWorkspace, startServer } from '../servers.ts'

it('Reports in a pipe are plain lines, and JSON when asked; Ink is not loaded for them', async () => {
  const server = await startServer('embedded', { now: () => '2026-10-07T12:00:00.000Z' })
  try {
    const workspace = await makeWorkspace(server, { name: 'Coffee' })
    const { id } = await plantConversation(server, workspace.id, {})
    await sendReply(server, workspace.id, id, { staffId: workspace.owner.staffId })
    const env = { WCRM_URL: server.url, WCRM_API_KEY: workspace.owner.key, XDG_CONFIG_HOME: '/nonexistent' }
    const staff = await runCli(['reports', 'staff'], env)
    assert.equal(
      staff.stdout,
      `${[workspace.owner.staffId, 'Owner', 1, 1, 0, 1, 0, 1, 0, 0, '', '', '', '', ''].join('\t')}\n`,
    )
    const summary = await runCli(['reports', 'summary', '--preset', 'today'], env)
    for (const line of [
      'range.from: 2026-10-07',
      'workspace.name: Coffee',
      'messages.sent: 1',
      'messages.delivery_rate: 0',
      'conversations.oldest_wait_buckets_now.under_1h: 0',
      'agents.sessions:',
    ]) {
      assert.ok(summary.stdout.split('\n').includes(line), `${line} in ${summary.stdout}`)
    }
    const json = JSON.parse((await runCli(['reports', 'staff', '--json'], env)).stdout)
    assert.deepEqual(json, await doAs(server, workspace.owner.key)('reports_staff'))
    const selected = JSON.parse((await runCli(['reports', 'staff', '--json=name,messages_sent'], env)).stdout)
    assert.deepEqual(selected.data, [{ name: 'Owner', messages_sent: 1 }])
  } finally {
    await server.close()
  }
  const loaded = spawnSync(
    process.execPath,
    [
      '--input-type=module',
      '-e',
      `
    import { registerHooks } from 'node:module'
    const seen = []
    registerHooks({ load: (url, context, next) => { seen.push(url); return next(url, context) } })
    const { printResponse } = await import('./cli/output.ts')
    const io = { stdin: {}, stdout: { write() {} }, stderr: { write() {} }, env: {} }
    await printResponse(
      { io, spec: { group: 'reports', verb: 'summary', output: {} }, flags: { wide: false, utc: false } },
      { value: { range: {} } },
    )
    console.log(JSON.stringify(seen.filter((url) => /node_modules\\/(ink|react)\\/|report-views/.test(url))))
  `,
    ],
    { encoding: 'utf8' },
  )
  assert.equal(loaded.stdout.trim(), '[]', loaded.stderr)
})

it('wcrm admin reports, beside a running server', async () => {
  const server = await startServer('embedded')
  try {
    const workspace = await makeWorkspace(server, { timezone: 'Asia/Kolkata' })
    const dataFlags = ['--data', (server.location as { dataDir: string }).dataDir, '--json']
    const admin = async (...argv: string[]) => await runCli(['admin', 'reports', ...argv, ...dataFlags], {})
    const runAdmin = async (...argv: string[]) => {
      const { exit, stdout, stderr } = await admin(...argv)
      assert.equal(exit, 0, stderr)
      return JSON.parse(stdout)
    }
    const daysAgo = (days: number): string =>
      Temporal.Now.plainDateISO('Asia/Kolkata').subtract({ days }).toString()
    const { data } = await runAdmin('generate')
    assert.deepEqual(
      data.map(({ id: _, generated_at: __, ...rest }: Record<string, unknown>) => rest),
      [
        { name: 'Yesterday', from: daysAgo(1), to: daysAgo(1), timezone: 'Asia/Kolkata', rows: 0 },
        { name: '7 days', from: daysAgo(7), to: daysAgo(1), timezone: 'Asia/Kolkata', rows: 0 },
        { name: '30 days', from: daysAgo(30), to: daysAgo(1), timezone: 'Asia/Kolkata', rows: 0 },
      ],
    )
    const {
      data: [quarter],
    } = await runAdmin(
      'generate',
      '--from',
      '2026-01-01',
      '--to',
      '2026-03-31',
      '--timezone',
      'utc',
      '--name',
      'Quarter',
    )
    assert.deepEqual(
      [quarter.name, quarter.from, quarter.to, quarter.timezone],
      ['Quarter', '2026-01-01', '2026-03-31', 'UTC'],
    )
    assert.deepEqual(
      (await runAdmin('list')).data.map((report: { id: string }) => report.id),
      [quarter.id, ...data.map((report: { id: string }) => report.id).toReversed()],
    )
    const response = await doAs(server, workspace.owner.key)('reports_staff', {
      from: '2026-01-01',
      to: '2026-03-31',
      timezone: 'UTC',
    })
    assert.deepEqual([response.report.id, response.report.name], [quarter.id, 'Quarter'])
    for (const [argv, pattern] of [
      [['--from', daysAgo(3), '--to', daysAgo(-1)], /--to must not be after today/],
      [['--from', daysAgo(3), '--to', daysAgo(0)], /--to must be a day that is over/],
      [['--from', daysAgo(1)], /--to is required with from/],
      [['--from', 'soon', '--to', daysAgo(1)], /--from is not a day/],
      [['--timezone', 'Mars/Olympus'], /--timezone is not an IANA/],
      [['--name', 'Quarter'], /--name requires --from and --to/],
    ] as const) {
      const reply = await admin('generate', ...argv)
      assert.deepEqual([reply.exit, reply.stdout], [2, ''], reply.stderr)
      assert.match(JSON.parse(reply.stderr).detail, pattern)
    }
    assert.equal((await runAdmin('list')).data.length, 4)
  } finally {
    await server.close()
  }
})
