<?php
// An offer of the day: asks the warehouse, then reads the shop's database.
declare(strict_types=1);

function warehouse_is_open(): bool
{
    usleep(12000); // a call over the network
    return true;
}

$category = $_GET['category'] ?? 'toys';
$shop = new PDO('sqlite:' . __DIR__ . '/../../../.deps/shop.db');
$query = $shop->prepare('SELECT name, cents, stock FROM product WHERE category = ? ORDER BY cents LIMIT 25');
$query->execute([$category]);
$open = warehouse_is_open();
?>
<!doctype html>
<title><?= htmlspecialchars($category) ?></title>
<?php if ($open): ?><p>Ready to be sent today.</p><?php endif ?>
<table>
<?php foreach ($query as $product): ?>
  <tr><td><?= htmlspecialchars($product['name']) ?></td><td><?= number_format($product['cents'] / 100, 2) ?></td><td><?= $product['stock'] ?></td></tr>
<?php endforeach ?>
</table>
