import { buffer } from 'node:stream/consumers'
import type { Provider } from '../../server/provider/port.ts'

/** Downloads a whole file from a provider. */
export const downloadFile = async (
  provider: Provider,
  ...given: Parameters<Provider['downloadMedia']>
): Promise<Buffer> => await buffer(await provider.downloadMedia(...given))
