// Reads an OCFL storage root by another's library and prints, of an object, every version's logical paths with the
// SHA-512 of what it reads there. node read-ocfl.cjs MODULES ROOT ID
const { createHash } = require('node:crypto');
const [, , modules, root, id] = process.argv;
const ocfl = require(modules + '/@ocfl/ocfl-fs');
(async () => {
  const storage = ocfl.storage({ root });
  await storage.load();
  const object = storage.object({ id });
  await object.load();
  const inventory = await object.getInventory(); // which it holds against its sidecar
  const all = {};
  for (const version of Object.keys(inventory.versions)) {
    all[version] = {};
    for (const file of await object.files(version)) {
      all[version][file.logicalPath] = createHash('sha512').update(await file.buffer()).digest('hex');
    }
  }
  console.log(JSON.stringify({ ids: await listed(storage), versions: all }));
})().catch((error) => { console.error(error); process.exit(1); });

async function listed(storage) {
  const ids = [];
  for await (const object of storage) {
    await object.load();
    ids.push((await object.getInventory()).id);
  }
  return ids;
}
