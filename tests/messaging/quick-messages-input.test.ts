import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { everyDatabase } from '../doors.ts'
import { summarizeReply } from './fixtures.ts'
import {
  createQuickMessageScene,
  createTeamWithMembers,
  FILE_URL,
  insertQuickMessageRow,
  QUICK_MESSAGES_NOW,
} from './quick-messages.ts'

const clock = { now: () => QUICK_MESSAGES_NOW }

everyDatabase(
  'Quick messages: input',
  (server) => {
    const createScene = () => createQuickMessageScene(server())

    it('a missing or contradicting field is rejected', async () => {
      const { workspace, call, listRows } = await createScene()
      const teamId = await createTeamWithMembers(server(), workspace.id, 'Team')
      for (const [input, expected] of [
        [{}, '#/text required'],
        [{ text: ' \n ' }, '#/text blank'],
        [{ type: 'IMAGE' }, '#/media_url required'],
        [{ type: 'DOCUMENT', text: 'a' }, '#/media_url required'],
        [{ text: 'a', media_url: FILE_URL }, '#/media_url not_allowed'],
        [{ text: 'a', file_name: 'a.pdf' }, '#/file_name not_allowed'],
        [{ type: 'VIDEO', media_url: FILE_URL, file_name: 'a.mp4' }, '#/file_name not_allowed'],
        ...[
          'https://localhost/a',
          'https://10.0.0.7/a',
          'https://[::1]/a',
          'https://files.internal/a',
          'https://intranet/a',
          'https://me:secret@files.example.com/a',
        ].map((url) => [{ type: 'IMAGE', media_url: url }, '#/media_url not_public'] as const),
        [{ text: 'a', visibility: 'team' }, '#/team_id required'],
        [{ text: 'a', visibility: 'company', team_id: teamId }, '#/team_id not_allowed'],
        [{ text: 'a', team_id: teamId }, '#/team_id not_allowed'],
        [{ text: 'Hi {{contact.nmae}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{Contact.Name}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{1}}' }, '#/text unknown_placeholder'],
        [{ text: 'Hi {{contact.name}' }, '#/text placeholder_form'],
        [{ text: 'Hi {{}}' }, '#/text placeholder_form'],
        [{ text: 'Hi contact.name}}' }, '#/text placeholder_form'],
        [{ type: 'IMAGE', media_url: FILE_URL, text: '{{me}}' }, '#/text unknown_placeholder'],
      ] as const)
        assert.deepEqual(
          summarizeReply(await call('messaging_create_quick_message', { code: 'a', ...input })),
          [400, 'invalid_input', expected],
          JSON.stringify(input),
        )
      assert.deepEqual(
        summarizeReply(
          await call('messaging_create_quick_message', {
            code: 'a',
            text: 'a',
            visibility: 'team',
            team_id: '999999999',
          }),
        ),
        [404, 'not_found'],
      )
      for (const input of [
        { code: 'a b' },
        { code: 'x'.repeat(61) },
        { text: 'x'.repeat(4097) },
        { media_url: 'http://files.example.com/a' },
        { type: 'TEMPLATE' },
      ]) {
        assert.equal(
          (await call('messaging_create_quick_message', { code: 'a', text: 'a', ...input })).status,
          400,
          JSON.stringify(input),
        )
      }
      assert.deepEqual(await listRows(), [])
    })

    it('an unknown placeholder error lists known ones, for agents without manager-only fields', async () => {
      const { run, call, member } = await createScene()
      await run('crm_create_custom_field', { key: 'plan', type: 'text' })
      await run('crm_create_custom_field', { key: 'margin', type: 'text', visibility: 'manager_only' })
      const input = { text: 'A {{ contact.plan }} and {{contact.margin}}' }
      const { body: saved } = await call('messaging_create_quick_message', {
        code: 'a',
        ...input,
        visibility: 'company',
      })
      assert.equal(saved.text, input.text)
      const agent = await member()
      const rejected = await agent.call('messaging_create_quick_message', { code: 'b', ...input })
      assert.deepEqual(summarizeReply(rejected), [400, 'invalid_input', '#/text unknown_placeholder'])
      const { allowed } = rejected.body.errors[0]
      assert.ok(
        ['{{contact.plan}}', '{{contact.name}}', '{{contact.phone}}', '{{staff.name}}'].every((name) =>
          allowed.includes(name),
        ),
        allowed,
      )
      assert.ok(!allowed.includes('{{contact.margin}}'), allowed)
      const { body: misspelled } = await call('messaging_create_quick_message', {
        code: 'b',
        text: '{{contact.nmae}}',
      })
      assert.match(misspelled.errors[0].fix, /\{\{contact\.name\}\}/)
      // A text with a placeholder that was deleted does not prevent other changes.
      const margin = (await run('crm_list_custom_fields')).data.find(
        (f: { key: string }) => f.key === 'margin',
      )
      await run('crm_delete_custom_field', { custom_field_id: margin.id })
      assert.equal(
        (await run('messaging_update_quick_message', { quick_message_id: saved.id, title: 'T' })).text,
        input.text,
      )
    })

    it('a text is accepted exactly when its placeholders can be filled', async () => {
      const { call } = await createScene()
      const placeholders = ['contact.name', 'contact.phone', 'staff.name']
      const part = fc.oneof(
        fc.constantFrom(
          '{',
          '}',
          '{{',
          '}}',
          '{{}}',
          '{{ }}',
          ' ',
          'contact.name',
          '{{contact.name',
          'contact.name}}',
          '{{contact.email}}',
          '{{nobody}}',
          '$&',
          '\\',
          '😀',
        ),
        fc.constantFrom(...placeholders).map((name) => `{{${name}}}`),
        fc.constantFrom(...placeholders).map((name) => `{{ ${name}\n}}`),
        fc.string({ maxLength: 5 }),
      )
      const text = fc
        .array(part, { minLength: 1, maxLength: 6 })
        .map((parts) => parts.join(''))
        .filter((t) => t.trim() !== '' && !t.includes('\0') && t.length <= 4096)
      const counts = { accepted: 0, rejected: 0 }
      await fc.assert(
        fc.asyncProperty(text, async (input) => {
          const { status, body } = await call('messaging_create_quick_message', {
            code: 'a',
            text: input,
            dry_run: true,
          })
          const remainder = input.replaceAll(/\{\{\s*([^{}]+?)\s*\}\}/g, (match, name: string) =>
            [...placeholders, 'contact.email'].includes(name) ? '' : match,
          )
          assert.equal(status, /\{\{|\}\}/.test(remainder) ? 400 : 201, JSON.stringify([input, body]))
          if (status === 201) counts.accepted++
          else counts.rejected++
        }),
        { numRuns: 150 },
      )
      assert.ok(counts.accepted > 10 && counts.rejected > 10, JSON.stringify(counts))
    })

    it('an update changes only the fields sent, never the type', async () => {
      const { workspace, run, call, listRows } = await createScene()
      const { id } = await run('messaging_create_quick_message', {
        code: 'menu',
        title: 'Menu',
        description: 'D',
        type: 'DOCUMENT',
        text: 'Caption',
        media_url: FILE_URL,
        file_name: 'a.pdf',
      })
      const [before] = await listRows()
      assert.equal(
        (await run('messaging_update_quick_message', { quick_message_id: id })).updated_at,
        QUICK_MESSAGES_NOW,
      )
      assert.deepEqual(await listRows(), [before])
      await run('messaging_update_quick_message', {
        quick_message_id: id,
        text: '',
        description: '',
        file_name: 'b.pdf',
      })
      assert.deepEqual(await listRows(), [
        {
          ...before,
          text: null,
          description: null,
          file_name: 'b.pdf',
          search: 'menu\u001Fmenu\u001F',
          version: 2,
        },
      ])
      assert.equal(
        (await call('messaging_update_quick_message', { quick_message_id: id, type: 'TEXT' })).status,
        400,
      )
      const textMessage = await run('messaging_create_quick_message', { code: 'text', text: 'Hi' })
      for (const [input, expected] of [
        [{ text: '' }, '#/text blank'],
        [{ media_url: FILE_URL }, '#/media_url not_allowed'],
        [{ file_name: 'a' }, '#/file_name not_allowed'],
        [{ text: '{{x}}' }, '#/text unknown_placeholder'],
      ] as const) {
        assert.deepEqual(
          summarizeReply(
            await call('messaging_update_quick_message', { quick_message_id: textMessage.id, ...input }),
          ),
          [400, 'invalid_input', expected],
        )
      }
      for (const type of ['TEMPLATE', 'INTERACTIVE', 'AUDIO']) {
        const id = await insertQuickMessageRow(server(), workspace.id, {
          code: type,
          type,
          text: 'Hi',
          template_name: 'offer',
          owner_staff_id: workspace.owner.staffId,
        })
        assert.deepEqual(
          summarizeReply(await call('messaging_update_quick_message', { quick_message_id: id, title: 'x' })),
          [409, 'conflict', 'not_editable'],
        )
        const {
          data: [row],
        } = await run('messaging_list_quick_messages', { type: type.toLowerCase() })
        assert.deepEqual([row.id, row.can_edit, row.template_name], [id, false, 'offer'])
        assert.equal((await run('messaging_delete_quick_message', { quick_message_id: id })).deleted, true)
      }
    })
  },
  clock,
)
