import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { localCommands } from '../../cli/groups.ts'
import { commandName, readManifest } from '../../cli/manifest.ts'
import { renderLocalManPages } from '../../scripts/man-local.ts'
import { renderManPages } from '../../scripts/man.ts'

const files = readdirSync('man')
const pages = new Map(files.map((name) => [name, readFileSync(`man/${name}`, 'utf8')]))

/** Runs a tool over all pages; undefined where it is not installed. */
const run = (tool: string, args: readonly string[]): string | undefined => {
  const { error, stdout, stderr } = spawnSync(tool, [...args, ...files.map((name) => `man/${name}`)], {
    maxBuffer: 50_000_000,
  })
  if (error && 'code' in error && error.code === 'ENOENT') return undefined
  if (error) throw error
  return `${tool === 'mandoc' ? stdout : ''}${stderr}`
}

describe('Manual pages', () => {
  it('are up to date (npm run generate), and there are no others', () => {
    const rendered = new Map([...renderManPages(), ...renderLocalManPages()])
    for (const [name, text] of rendered) assert.equal(pages.get(name), text, name)
    // Their own tests compare these two.
    assert.deepEqual(files.toSorted(), [...rendered.keys(), 'wcrm-admin.1', 'wcrm-sandbox.1'].toSorted())
  })

  it('every command has a page, with its name and a date', () => {
    const names = [...readManifest().commands.map(commandName), ...Object.keys(localCommands)]
    for (const name of names) {
      const page = `wcrm-${name.replace(' ', '-')}`
      const text = pages.get(`${page}.1`) ?? ''
      const [title, dated] = [page.toUpperCase(), page].map((each) => each.replaceAll('-', '\\-'))
      assert.match(text, /^\.TH \S+ 1 "\d{4}-\d{2}-\d{2}" /m, page)
      assert.ok(text.includes(`.TH ${title} 1 `) && text.includes(`\n${dated} \\- `), page)
    }
  })

  it('links lead to pages that exist, and every page is linked', () => {
    const linked = new Set<string>()
    for (const [name, text] of pages)
      for (const [, link = ''] of text.matchAll(/\\fB([\w\\-]+)\\fR\(1\)/g)) {
        const target = `${link.replaceAll('\\-', '-')}.1`
        assert.ok(pages.has(target), `${name}: ${target}`)
        assert.notEqual(target, name)
        linked.add(target)
      }
    assert.deepEqual([...linked].toSorted(), files.toSorted())
  })

  it('mandoc finds nothing to warn of', (t) => {
    const found = run('mandoc', ['-T', 'lint', '-W', 'warning'])
    if (found === undefined) return t.skip('mandoc is not installed')
    assert.equal(found, '')
  })

  it('groff renders all of them without a warning', (t) => {
    const found = run('groff', ['-ww', '-man', '-Tutf8'])
    if (found === undefined) return t.skip('groff is not installed')
    assert.equal(found, '')
  })
})
