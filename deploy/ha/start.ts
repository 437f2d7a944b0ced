import { once } from 'node:events'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { startCluster } from './cluster.ts'

/**
 * Starts the cluster of this folder on one machine, to try it: `node deploy/ha/start.ts [--data DIR]`. Its three
 * machines are 127.0.0.11 to 127.0.0.13. Prints the URLs for WCRM_DATABASE_URL; SIGINT or SIGTERM stops all of it.
 */
const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '/tmp/wcrm-ha' },
    'write-port': { type: 'string', default: '5000' },
    'read-port': { type: 'string', default: '5001' },
  },
})
const signal = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')])
const cluster = await startCluster({
  folder: resolve(values.data),
  addresses: ['127.0.0.11', '127.0.0.12', '127.0.0.13'],
  network: '127.0.0.0/8',
  writePort: Number(values['write-port']),
  readPort: Number(values['read-port']),
})
console.log(`leader    ${(await cluster.findLeader())?.name}
haproxy   ${cluster.writeUrl}
standbys  ${cluster.readUrl}
direct    ${cluster.directUrl}
patronictl -c ${cluster.machines[0]!.folder}/patroni.yml list`)
await signal
await cluster.stop()
